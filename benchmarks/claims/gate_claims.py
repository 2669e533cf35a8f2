"""AA1 and AA4 to AA8, read from finished comparisons and sweeps.

    headcount compare FINETUNED --task TASK --ratio 0.5 --seeds 5 --out DIR    # one for each task
    headcount sweep FINETUNED --task TASK --over gate-lr=… --out LR
    headcount sweep FINETUNED --task TASK --over mu=… --out MU
    python benchmarks/claims/gate_claims.py DIR… [--rates LR…] [--penalties MU…]

Prints Markdown. Intervals are 95 % over seeds (Student's t); over several tasks the mean of the
tasks is one value for every seed.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from headcount.statistics import interval

OURS = "straight-through"


def said(values: np.ndarray) -> str:
    return "{:+.3f} [{:+.3f}, {:+.3f}]".format(*interval(values.tolist()))


def verdict(values: np.ndarray) -> str:
    """Whether the values are above 0."""
    _, low, high = interval(values.tolist())
    return "holds" if low > 0 else "does not" if high < 0 else "undecided"


def column(found: dict[str, Any], method: str, *path: str) -> np.ndarray:
    """One value for each seed of a method."""
    values = []
    for run in sorted(found["runs"], key=lambda run: run["seed"]):
        if run["method"] == method:
            value: Any = run
            for name in path:
                value = value[name]
            values.append(value)
    return np.array(values)


def scores(comparisons: list[dict[str, Any]]) -> None:
    methods = list(dict.fromkeys(run["method"] for run in comparisons[0]["runs"]))
    tasks = [found["about"]["task"] for found in comparisons]
    print(f"| heads | {' | '.join(tasks)} |\n|---{'|---' * len(tasks)}|")
    given = (f"{found['full']['score']:.3f}" for found in comparisons)
    print(f"| all, as given | {' | '.join(given)} |")
    for method in methods:
        each = (column(found, method, "score") for found in comparisons)
        cells = (f"{values.mean():.3f} ± {values.std(ddof=1):.3f}" for values in each)
        print(f"| {method} | {' | '.join(cells)} |")
    for rival in (method for method in methods if method != OURS):
        gaps = np.array(
            [column(each, OURS, "score") - column(each, rival, "score") for each in comparisons]
        )
        print(
            f"\nAA1 {OURS} minus {rival}: {said(gaps.mean(0))}, by task "
            f"{np.round(gaps.mean(1), 3).tolist()}: {verdict(gaps.mean(0))}"
        )


def gates(comparisons: list[dict[str, Any]]) -> None:
    heads = np.array([column(each, OURS, "learned", "gates_reopened") for each in comparisons])
    kept = np.array(
        [column(each, OURS, "learned", "gates_reopened_and_kept") for each in comparisons]
    )
    stay = np.array([column(each, OURS, "kept") for each in comparisons])
    print(
        f"\nAA4 gates that closed and reopened: {heads.mean():.1f} a run (least {heads.min()}); "
        f"of the heads kept, reopened ones are {100 * (kept / stay).mean():.0f} %: "
        f"{'holds' if heads.min() > 0 else 'does not'}"
    )
    layers = np.array(
        [
            [[int(digit) for digit in text.replace(",", " ").split()] if "," in text
             else [int(digit) for digit in text] for text in column(each, OURS, "pattern")]
            for each in comparisons
        ]
    )  # fmt: skip
    third = layers.shape[2] // 3
    fewer = layers[:, :, :-third].mean(2) - layers[:, :, -third:].mean(2)
    print(
        f"\nAA5 heads left by layer: {np.round(layers.mean((0, 1)), 2).tolist()}; below minus in "
        f"the last third: {said(fewer.mean(0))}, by task {np.round(fewer.mean(1), 2).tolist()}: "
        f"{verdict(fewer.mean(0))}"
    )
    gap = {
        method: np.array([column(each, method, "learned", "gap", "gap") for each in comparisons])
        for method in ("hard-concrete", "subset", OURS)
    }
    for method, value in gap.items():
        print(
            f"\nAA8 training gates minus test gates, {method}: {said(value.mean(0))}, by task "
            f"{np.round(value.mean(1), 3).tolist()}"
        )


def swept(found: dict[str, Any], claim: str) -> None:
    print(f"\n{claim}, {found['about']['task']}, all heads {found['full']['score']:.3f}\n")
    print(f"| {found['about']['over']} | sparsity | score | of the full score |\n|---|---|---|---|")
    for row in found["summary"]:
        closed = f", all gates closed in {row['all_closed']}" if row["all_closed"] else ""
        print(
            f"| {row['value']:g} | {row['sparsity']['mean']:.3f}{closed} | "
            f"{row['score']['mean']:.3f} | {100 * row['relative']:.1f} % |"
        )
    for name, trend in found["trends"].items():
        print(f"\nSpearman with {name}: {trend}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("comparisons", type=Path, nargs="+")
    parser.add_argument("--rates", type=Path, nargs="*", default=[])
    parser.add_argument("--penalties", type=Path, nargs="*", default=[])
    args = parser.parse_args()
    comparisons = [json.loads((each / "compare.json").read_text()) for each in args.comparisons]
    scores(comparisons)
    gates(comparisons)
    for folders, claim in ((args.rates, "AA6"), (args.penalties, "AA7")):
        for folder in folders:
            swept(json.loads((folder / "sweep.json").read_text()), claim)
    return 0


if __name__ == "__main__":
    sys.exit(main())
