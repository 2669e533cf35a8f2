"""The papers' claims that need pruned and fine-tuned models, tested on the pocket world.

    python benchmarks/claims/pocket_claims.py --keep DIR [--seeds 5] [--only-read]

Makes the runs of `pocket_runs.py`, two at a time, keeps them in DIR, and prints
Markdown: RA8, RA9, WL4 and LO7 on three tasks; WL5 to WL8 on the two of them that are not solved
whatever is cut; on all five, without training, LO1, LO3, recovery against none, and methods
against random.
Killed, the same command goes on. Intervals are 95 % over seeds (Student's t), tasks taken as they
are: for every seed the mean over the tasks is one value.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from pocket_runs import (
    FIXED,
    LAYERS,
    METHODS,
    RATIOS,
    RETRAINED,
    TASKS,
    Kept,
    make_cuts,
    make_trained,
)
from scipy.stats import binomtest, t

from headcount.models.find import layout
from headcount.models.load import load
from headcount.pruning.cluster import Cluster
from headcount.pruning.methods import Given
from headcount.studies.curve import pruning_chance
from headcount.tasks.loading import hush

TRAINED = ("pocket-acceptability", "pocket-sentiment", "pocket-entailment")
LAYERED = ("pocket-acceptability", "pocket-entailment")


class Table:
    """The runs of all tasks, by what was done; a value is a (task, seed) array."""

    def __init__(self, folder: Path, tasks: Sequence[str]) -> None:
        self.tasks = list(tasks)
        self.runs = {}
        for task in tasks:
            self.runs |= Kept(folder / f"{task}.jsonl").runs

    def scores(self, repair: str, method: str, ratio: float, seeds: int) -> np.ndarray:
        return np.array(
            [
                [self.runs[task, repair, method, ratio, seed].score for seed in range(seeds)]
                for task in self.tasks
            ]
        )

    def full(self, repair: str, seeds: int) -> np.ndarray:  # (task, seed or 1)
        return self.scores(repair, "full", 0.0, 1 if repair == "none" else seeds)


def interval(values: np.ndarray) -> str:
    """Mean and 95 % interval of one value per seed."""
    mean, count = values.mean(), len(values)
    if count < 2:
        return f"{mean:+.3f}"
    wide = t.ppf(0.975, count - 1) * values.std(ddof=1) / np.sqrt(count)
    return f"{mean:+.3f} [{mean - wide:+.3f}, {mean + wide:+.3f}]"


def bounds(values: np.ndarray) -> tuple[float, float]:
    wide = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean() - wide), float(values.mean() + wide)


def against(values: np.ndarray, holds: Callable[[float], bool]) -> str:
    """The verdict on a mean over seeds from whether both ends of its interval pass."""
    ends = [holds(end) for end in bounds(values)]
    return "holds" if all(ends) else "undecided" if any(ends) else "does not"


def zero_shot(table: Table, seeds: int) -> None:
    full = table.full("train", seeds).mean(1)
    print("| task | full | cluster 50 % | 75 % | 85 % | random 50 % |\n|---|---|---|---|---|---|")
    cells = {("cluster", r): table.scores("train", "cluster", r, seeds) for r in (0.5, 0.75, 0.85)}
    cells["random", 0.5] = table.scores("train", "random", 0.5, seeds)
    for row, task in enumerate(table.tasks):
        said = " | ".join(
            f"{each[row].mean():.3f} ± {each[row].std(ddof=1):.3f}" for each in cells.values()
        )
        print(f"| {task} | {full[row]:.3f} | {said} |")
    for ratio in (0.75, 0.85):
        drop = 1 - cells["cluster", ratio].mean(1) / full
        print(
            f"\nRA8 at {ratio:.0%}: relative drop by task {np.round(drop, 3).tolist()}; "
            f"below 5 % on {(drop < 0.05).sum()} of {len(drop)}"
        )
    paired = (cells["cluster", 0.5] - cells["random", 0.5]).mean(0)
    print(f"\ncluster minus random at 50 %, fine-tuned: {interval(paired)}, seeds {seeds}")
    for row, task in enumerate(table.tasks):
        each = cells["cluster", 0.5][row] - cells["random", 0.5][row]
        print(f"- {task}: {interval(each)}")
    drop = 1 - cells["random", 0.5].mean(1) / full
    by_seed = (1 - cells["random", 0.5] / table.full("train", seeds)).mean(0)
    print(
        f"\nWL4 half at random, relative drop {interval(by_seed)}; by task "
        f"{np.round(drop, 3).tolist()}: {against(by_seed, lambda v: v < 0.01)}"
    )


def which_go() -> None:
    model = load("pocket")
    decide = Cluster().prepare(model, Given())
    print("\nRA9, chance of being pruned by cluster, ten clusterings")
    for ratio in (0.25, 0.5, 0.75):
        chance = pruning_chance(decide, ratio, layout(model))
        rows = np.array(next(iter(chance.by_layer().values())))
        thirds = [part.mean() for part in np.array_split(rows, 3)]
        never = (np.array_split(rows, 3)[1] == 0).sum()
        middle = thirds[1] < min(thirds[0], thirds[2]) and never > 0
        print(
            f"- {ratio:.0%}: thirds {', '.join(f'{x:.3f}' for x in thirds)}; "
            f"middle heads never pruned {never}: {'holds' if middle else 'does not'}"
        )


def whole_layers(table: Table, seeds: int) -> None:
    full = table.full("train", seeds)

    def relative(which: str) -> np.ndarray:
        return table.scores("train", f"layers {which}", 0.0, seeds) / full

    print("\n| layers emptied | relative score, mean over tasks |\n|---|---|")
    for which in LAYERS:
        print(f"| {which} | {interval(relative(which).mean(0))} |")
    top = np.mean([relative(f"top:{k}") - relative(f"bottom:{k}") for k in (1, 2, 3)], axis=0)
    lowest, highest = bounds(top.mean(0))
    print(
        f"\nWL5 top minus bottom: {interval(top.mean(0))}: "
        f"{'holds' if lowest <= 0 <= highest else 'does not'}"
    )
    pairs = [("middle:2", "top:1+bottom:1"), ("middle:4", "top:2+bottom:2")]
    signs = np.concatenate([(relative(a) < relative(b)).ravel() for a, b in pairs])
    test = binomtest(int(signs.sum()), len(signs), 0.5)
    p, each = test.pvalue, test.proportion_ci()
    verdict = "holds" if each.low > 0.5 else "does not" if each.high < 0.5 else "undecided"
    print(
        f"\nWL6 middle worse than top and bottom in {signs.sum()} of {len(signs)} "
        f"[{each.low:.2f}, {each.high:.2f}], sign test p {p:.4f}: {verdict}"
    )
    for name in ("odd", "even"):
        found = relative(name) - (relative("top:3") + relative("bottom:3")) / 2
        print(
            f"\nWL7 {name} minus consecutive (top:3, bottom:3): {interval(found.mean(0))}: "
            f"{against(found.mean(0), lambda v: v > 0)}"
        )


def no_training(table: Table, seeds: int) -> None:
    full = table.full("none", seeds)
    curves = {
        name: np.stack([table.scores("none", name, r, seeds) / full for r in RATIOS])
        for name in METHODS
    }  # (ratio, task, seed)
    print(f"\n| no training | {' | '.join(f'{r:.0%}' for r in RATIOS)} | area |")
    print("|---" * (len(RATIOS) + 2) + "|")
    for name, value in curves.items():
        cells = " | ".join(f"{one:.3f}" for one in value.mean((1, 2)))
        print(f"| {name} | {cells} | {interval(value.mean((0, 1)))} |")
    half = curves["importance"][RATIOS.index(0.5)]
    print(
        f"\nLO1 relative score at 50 %, importance: {interval(half.mean(0))}, by task "
        f"{np.round(half.mean(1), 3).tolist()}: {against(half.mean(0), lambda v: v > 0.9)}"
    )
    for other in ("importance l2", "importance"):
        found = (curves["importance l1"] - curves[other]).mean((0, 1))
        print(f"\nLO3 area, l1 minus {other}: {interval(found)}: {against(found, lambda v: v > 0)}")
    print(
        "\n| at 50 % | cut | recovered | recovery adds | one more epoch | against random: cut "
        "| recovered | trained |\n" + "|---" * 8 + "|"
    )
    every = [*METHODS, *FIXED]
    names = {
        "none": {name: table.scores("none", name, 0.5, seeds) for name in every},
        "recover": {name: table.scores("recover", name, 0.5, seeds) for name in every},
        "again": {name: table.scores("again", name, 0.5, seeds) for name in RETRAINED},
    }
    for name in every:
        better = [
            interval((own[name] - own["random"]).mean(0)) if name in own else "-"
            for own in names.values()
        ]
        means = [f"{own[name].mean():.3f}" if name in own else "-" for own in names.values()]
        gain = interval((names["recover"][name] - names["none"][name]).mean(0))
        print(f"| {name} | {means[0]} | {means[1]} | {gain} | {means[2]} | {' | '.join(better)} |")
    print("\nRecovery by task (recovered minus cut, mean over seeds)\n")
    for name in every:
        gains = (names["recover"][name] - names["none"][name]).mean(1)
        print(
            f"- {name}: "
            + ", ".join(
                f"{task[7:]} {gain:+.3f}" for task, gain in zip(table.tasks, gains, strict=True)
            )
        )


def movement(table: Table, seeds: int) -> None:
    print("\nWL8 spread of the mean weight change between layers, after the cut, mean over tasks")
    cuts = [("random", 0.1), ("random", 0.9), *((f"layers {n}", 0.0) for n in LAYERS)]
    found = []
    for method, ratio in cuts:
        values = np.array(
            [
                [table.runs[task, "train", method, ratio, seed].spread for seed in range(seeds)]
                for task in table.tasks
            ]
        )
        found.append(values)
        print(f"- {method}{f' {ratio:.0%}' if ratio else ''}: {interval(values.mean(0))}")
    below = sum(int((value < 0.1).sum()) for value in found)
    print(f"below 10 % in {below} of {sum(value.size for value in found)} runs")


def frozen(table: Table, seeds: int) -> None:
    found = table.scores("train", "freeze 1", 0.0, seeds) / table.full("train", seeds)
    each = found.mean(1)
    print(
        f"\nLO7 lowest of 6 layers and the embeddings frozen: relative {interval(found.mean(0))}, "
        f"by task {np.round(each, 3).tolist()}: at least 98 % on {(each >= 0.98).sum()} of "
        f"{len(each)}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, required=True, help="a folder for the runs")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only-read", action="store_true", help="make no runs")
    args = parser.parse_args()
    args.keep.mkdir(parents=True, exist_ok=True)
    hush()
    if not args.only_read:
        with ProcessPoolExecutor(args.processes) as pool:
            kept = args.keep
            jobs = [pool.submit(make_trained, task, kept, args.seeds, False) for task in TRAINED]
            jobs += [pool.submit(make_cuts, task, kept, args.seeds) for task in TASKS]
            jobs += [pool.submit(make_trained, task, kept, args.seeds, True) for task in LAYERED]
            for job in jobs:
                print(job.result(), file=sys.stderr, flush=True)
    trained = Table(args.keep, TRAINED)
    zero_shot(trained, args.seeds)
    which_go()
    no_training(Table(args.keep, TASKS), args.seeds)
    frozen(trained, args.seeds)
    layered = Table(args.keep, LAYERED)
    whole_layers(layered, args.seeds)
    movement(layered, args.seeds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
