"""Does a search's statement hold on rows that nothing has seen? 20 fresh draws.

    python benchmarks/coverage/search_honesty.py MODEL --task stsb --data GLUE --work DIR \
        [--part 2500] [--rows 800] [--max-drop 1%] [--repetitions 20] \
        [--calibration-samples 256] [--seeds 1] [--untouched 1000]

The model is fine-tuned on a part of the train split; the rest of it and dev, equal rows once, are
a pool that nothing was trained on. Every repetition draws from the pool: half of `--rows` choose,
half make the statement, all others are untouched (`--untouched` of them). The stated chance is
held against whether the bound holds on them. The same command again goes on.
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
from headcount.studies.bounds import read_drop
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
    task: Task, own: Examples, pool: Examples, rows: int, seed: int, untouched: int | None = None
) -> Task:
    """The task with fresh rows to choose and state on, and with the untouched ones."""
    last = None if untouched is None else rows + untouched
    order = np.random.default_rng((seed, 77)).permutation(len(pool))
    splits = {"train": own, "dev": pool.take(np.sort(order[:rows])),
              "untouched": pool.take(np.sort(order[rows:last]))}  # fmt: skip
    return replace(task, splits=SPLITS, loader=splits.__getitem__)


def once(base: Path, task: Task, seed: int, asked: argparse.Namespace) -> dict[str, Any]:
    """One search, and what became of its statement on untouched rows."""
    model = load_for_task(str(base), task, new_head=False)
    tokenizer = load_tokenizer(str(base))
    found = hc.search(
        model,
        task,
        max_drop=asked.max_drop,
        tokenizer=tokenizer,
        baseline=0,
        seed=seed,
        calibration=hc.Calibration(samples=asked.samples),
        search_options=hc.SearchOptions(
            seeds=asked.seeds, bench=False, confidence=asked.confidence
        ),
    )
    data = found.to_json()
    row: dict[str, Any] = {name: data[name] for name in ("kept", "chance", "holds", "difference")}
    row |= {"seed": seed, "tried": len(data["tried"]), "seconds": data["seconds"]}
    row["stated_on"] = data["rows"]["scored"]["n"]
    if found.model is None:
        return row | {"held": None}
    scoring = hc.Scoring(split="untouched")
    sides = [hc.evaluate(each, task, scoring=scoring, tokenizer=tokenizer)
             for each in (model, found.model)]  # fmt: skip
    drop = read_drop(asked.max_drop)
    first, last = (side.outcome for side in sides)
    assert first is not None
    assert last is not None
    truth = within(task.metric, first, [last], drop.value, relative=drop.relative)
    return row | {"held": truth.holds, "there": truth.chance, "untouched": truth.difference.value,
                  "n": sides[0].n}  # fmt: skip


def summary(rows: list[dict[str, Any]]) -> None:
    """Stated against seen."""
    print("| draw | heads | stated difference | stated chance | untouched | held |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        lost = row["difference"] or {"value": float("nan")}
        if row["held"] is None:
            print(f"| {row['seed']} | {row['kept']} | no cut within the bound | | | |")
            continue
        cells = (row["seed"], row["kept"], f"{lost['value']:+.4f}", f"{row['chance']:.2f}",
                 f"{row['untouched']:+.4f}", "yes" if row["held"] else "no")  # fmt: skip
        print("| " + " | ".join(map(str, cells)) + " |")
    made = [row for row in rows if row["held"] is not None]
    stated = float(np.mean([row["chance"] for row in made]))
    held = sum(row["held"] for row in made)
    chance = binom.cdf(held, len(made), stated)
    print(
        f"\n{len(made)} statements of {len(rows)} searches: mean stated chance {stated:.3f}, held "
        f"{held} of {len(made)} ({held / len(made):.3f}); as few or fewer by chance alone: "
        f"{chance:.3f}. Point statements that held: {sum(row['holds'] for row in made)}. Mean "
        f"heads kept {np.mean([row['kept'] for row in made]):.1f}, untouched rows "
        f"{made[0]['n']}."
    )
    off = np.array([_standard_errors(row) for row in made])
    print(
        f"Between statement and untouched rows the loss differs by {off.mean():+.2f} standard "
        f"errors in the mean, {np.sqrt(np.square(off).mean()):.2f} in the root mean square (0 and "
        "1 where intervals are right)."
    )


def _standard_errors(row: dict[str, Any]) -> float:
    """By how many standard errors the statement and the untouched rows differ."""
    stated = row["difference"]
    own = (stated["high"] - stated["low"]) / 3.92
    # untouched rows have the same spread, and are so many times as many
    return (stated["value"] - row["untouched"]) / (own * np.sqrt(1 + row["stated_on"] / row["n"]))


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
    asked = parser.parse_args()
    task = open_task(asked.task, **({} if asked.data is None else {"data": asked.data}))
    own, pool = pools(task, asked.part)
    base = asked.work / "base"
    if not (base / "config.json").is_file():
        task_part = drawn(task, own, pool, asked.rows, 0)
        changes = {"epochs": asked.epochs, "learning_rate": asked.learning_rate}
        given = {name: value for name, value in changes.items() if value is not None}
        options = replace(PRESETS[asked.preset], like_lengths=True, **given)
        model = load_for_task(asked.model, task_part)
        hc.train(model, task_part, options=options, out=base,
                 tokenizer=load_tokenizer(asked.model), evaluation=False)  # fmt: skip
    file = asked.work / f"{asked.max_drop}-{asked.confidence:g}-{asked.seeds}.jsonl"
    rows = read_lines(file, "repetitions")[0] if file.is_file() else []
    for seed in range(len(rows), asked.repetitions):
        rows.append(
            once(base, drawn(task, own, pool, asked.rows, seed, asked.untouched), seed, asked)
        )
        append_line(file, rows[-1])
        print(json.dumps(rows[-1]), flush=True)
    summary(rows)


if __name__ == "__main__":
    main()
