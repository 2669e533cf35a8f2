"""Is a search's held-out estimate right on rows that nothing has seen? 20 fresh draws.

    python benchmarks/coverage/search_honesty.py MODEL --task stsb --data GLUE --work DIR \
        [--part 2500] [--rows 800] [--max-drop 1%] [--repetitions 20] \
        [--calibration-samples 256] [--seeds 1] [--untouched 1000]

The model is fine-tuned on a part of the train split; the rest of it and dev, equal rows once, are
a pool that nothing was trained on. Every repetition draws from the pool: half of `--rows` are the
selection set, half the held-out set, all others are untouched (`--untouched` of them). The
estimated probability is compared with whether the loss is within the bound on them. The same
command again goes on.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

import headcount as hc
from headcount.base.files import append_line, read_lines
from headcount.studies.search.bounds import read_drop
from headcount.tasks import Examples, Task, open_task
from headcount.tasks.loading import load_for_task, load_tokenizer
from headcount.tasks.within import within
from headcount.training.options import PRESETS

SPLITS = ("train", "dev", "untouched")


def pools(task: Task, part: int) -> tuple[Examples, Examples]:
    """The rows that are trained on, and all others, which differ from them and from each other."""
    train, dev = task.load("train"), task.load("dev")
    texts = tuple([*one, *two] for one, two in zip(train.texts, dev.texts, strict=True))
    assert train.labels is not None
    assert dev.labels is not None
    every = Examples(texts, np.concatenate([train.labels, dev.labels]))
    order = np.random.default_rng(0).permutation(len(train))
    keys = list(zip(*every.texts, strict=True))
    seen = {keys[row] for row in order[:part]}
    rest = []
    for row in [*order[part:], *range(len(train), len(every))]:
        if keys[row] not in seen:
            seen.add(keys[row])
            rest.append(row)
    return every.take(order[:part]), every.take(np.array(rest))


def drawn(
    task: Task,
    training: Examples,
    pool: Examples,
    rows: int,
    seed: int,
    untouched: int | None = None,
) -> Task:
    """The task with fresh rows to select and estimate on, and with the untouched ones."""
    last = None if untouched is None else rows + untouched
    order = np.random.default_rng((seed, 77)).permutation(len(pool))
    splits = {
        "train": training,
        "dev": pool.take(np.sort(order[:rows])),
        "untouched": pool.take(np.sort(order[rows:last])),
    }
    return replace(task, splits=SPLITS, loader=splits.__getitem__)


def once(base: Path, task: Task, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """One search, and how right its held-out estimate is on untouched rows."""
    model = load_for_task(str(base), task, new_head=False)
    tokenizer = load_tokenizer(str(base))
    result = hc.search(
        model,
        task,
        max_drop=arguments.max_drop,
        tokenizer=tokenizer,
        baseline=0,
        seed=seed,
        calibration=hc.Calibration(samples=arguments.calibration_samples),
        search_options=hc.SearchOptions(
            seeds=arguments.seeds, bench=False, confidence=arguments.confidence
        ),
    )
    data = result.to_json()
    row: dict[str, Any] = {
        name: data[name] for name in ("kept", "probability", "within_bound", "difference")
    }
    row |= {"seed": seed, "tried": len(data["tried"]), "seconds": data["seconds"]}
    row["stated_on"] = data["rows"]["held_out"]["n"]
    if result.model is None:
        return row | {"held": None}
    scoring = hc.Scoring(split="untouched")
    sides = [
        hc.evaluate(scored, task, scoring=scoring, tokenizer=tokenizer)
        for scored in (model, result.model)
    ]
    drop = read_drop(arguments.max_drop)
    first, last = (side.outcome for side in sides)
    assert first is not None
    assert last is not None
    truth = within(task.metric, first, [last], drop.value, relative=drop.relative)
    return row | {
        "held": truth.within_bound,
        "there": truth.probability,
        "untouched": truth.difference.value,
        "n": sides[0].n,
    }


def summary(rows: list[dict[str, Any]]) -> None:
    """Estimated against seen."""
    print(
        "| draw | heads | estimated difference | estimated probability | untouched | within bound |"
    )
    print("|---|---|---|---|---|---|")
    for row in rows:
        lost = row["difference"] or {"value": float("nan")}
        if row["held"] is None:
            print(f"| {row['seed']} | {row['kept']} | no pruning within the bound | | | |")
            continue
        cells = (
            row["seed"],
            row["kept"],
            f"{lost['value']:+.4f}",
            f"{row['probability']:.2f}",
            f"{row['untouched']:+.4f}",
            "yes" if row["held"] else "no",
        )
        print("| " + " | ".join(map(str, cells)) + " |")
    estimates = [row for row in rows if row["held"] is not None]
    stated = float(np.mean([row["probability"] for row in estimates]))
    held = sum(row["held"] for row in estimates)
    chance = binom.cdf(held, len(estimates), stated)
    count, points = len(estimates), sum(row["within_bound"] for row in estimates)
    kept = np.mean([row["kept"] for row in estimates])
    print(
        f"\n{count} estimates of {len(rows)} searches: mean estimated probability {stated:.3f}, "
        f"within the bound {held} of {count} ({held / count:.3f}); as few or fewer by chance "
        f"alone: {chance:.3f}. Point estimates that held: {points}. Mean heads kept {kept:.1f}, "
        f"untouched rows {estimates[0]['n']}."
    )
    off = np.array([_standard_errors(row) for row in estimates])
    print(
        f"Between held-out estimate and untouched rows the loss differs by {off.mean():+.2f} "
        f"standard errors in the "
        f"mean, {np.sqrt(np.square(off).mean()):.2f} in the root mean square (0 and "
        "1 where intervals are right)."
    )


def _standard_errors(row: dict[str, Any]) -> float:
    """By how many standard errors the held-out estimate and the untouched rows differ."""
    stated = row["difference"]
    error = (stated["high"] - stated["low"]) / 3.92
    # untouched rows have the same spread, and are so many times as many
    return (stated["value"] - row["untouched"]) / (error * np.sqrt(1 + row["stated_on"] / row["n"]))


def main() -> None:
    """Fine-tune, search again and again, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("model")
    parser.add_argument("--task", required=True)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--part", type=int, default=2500)
    parser.add_argument("--rows", type=int, default=800)
    parser.add_argument("--max-drop", default="1%")
    parser.add_argument("--confidence", type=float, default=0.8)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--calibration-samples", type=int, default=256)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--untouched", type=int)
    parser.add_argument("--preset", default="finetune")
    parser.add_argument("--epochs", type=float)
    parser.add_argument("--learning-rate", type=float)
    arguments = parser.parse_args()
    task = open_task(arguments.task, **({} if arguments.data is None else {"data": arguments.data}))
    training, pool = pools(task, arguments.part)
    base = arguments.work / "base"
    if not (base / "config.json").is_file():
        task_part = drawn(task, training, pool, arguments.rows, 0)
        changes = {"epochs": arguments.epochs, "learning_rate": arguments.learning_rate}
        given = {name: value for name, value in changes.items() if value is not None}
        options = replace(PRESETS[arguments.preset], like_lengths=True, **given)
        model = load_for_task(arguments.model, task_part)
        hc.train(
            model,
            task_part,
            options=options,
            out=base,
            tokenizer=load_tokenizer(arguments.model),
            evaluation=False,
        )
    file = arguments.work / f"{arguments.max_drop}-{arguments.confidence:g}-{arguments.seeds}.jsonl"
    rows = read_lines(file, "repetitions")[0] if file.is_file() else []
    for seed in range(len(rows), arguments.repetitions):
        rows.append(
            once(
                base,
                drawn(task, training, pool, arguments.rows, seed, arguments.untouched),
                seed,
                arguments,
            )
        )
        append_line(file, rows[-1])
        print(json.dumps(rows[-1]), flush=True)
    summary(rows)


if __name__ == "__main__":
    main()
