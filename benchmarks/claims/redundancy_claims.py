"""The claims RA1–RA7 about attention redundancy, tested on a real model and GLUE.

    python benchmarks/claims/redundancy_claims.py MODEL --data GLUE [--finetuned DIR]
        [--like-lengths]

MODEL and GLUE default to HEADCOUNT_MINILM and HEADCOUNT_DATA. All seven distances are measured on
the dev texts of five tasks and on random tokens; with --finetuned, DIR/<task> is measured on its
task, too; with --like-lengths, so are random tokens in rows as long as each task's. --keep stores
the matrices, and reads those that are there. Prints Markdown.

What the rows mean is in `redundancy_rows.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import numpy as np
import torch
from redundancy_rows import KINDS, Drawn, correlations, where

import headcount as hc
from headcount.likeness.inputs import even_order
from headcount.likeness.result import Redundancy, load_redundancy
from headcount.tasks import open_task
from headcount.tasks.encoding import Encoded, encode
from headcount.tasks.loading import hush, load_tokenizer
from headcount.tasks.masking import random_tokens


def measure(args: argparse.Namespace) -> tuple[dict[tuple[str, str], Redundancy], float]:
    """(phase, inputs) -> redundancy, and the seconds of CPU it took."""
    start = time.process_time()
    tokenizer = load_tokenizer(args.model)
    rows: dict[str, Any] = {}
    for task in KINDS:
        opened = open_task(task, data=args.data)
        rows[task] = encode(opened, opened.load("dev"), tokenizer, max_length=args.max_length)
    generator = torch.Generator().manual_seed(args.seed)
    rows["random"] = random_tokens(tokenizer, args.limit, 5, args.max_length, generator)
    found: dict[tuple[str, str], Redundancy] = {}
    base = hc.load(args.model, allow_pickle=True)
    for name in rows:
        found["pre-trained", name] = one(base, rows[name], "pre-trained", name, args)
    for task in KINDS if args.like_lengths else ():
        sample = rows[task].take(even_order(rows[task].lengths, args.limit, args.seed))
        like = random_like(tokenizer, sample.lengths, args.seed)
        found["random like", task] = one(base, like, "random like", task, args)
    for task in KINDS if args.finetuned else ():
        folder = args.finetuned / task
        if folder.is_dir():
            model = hc.load(folder)
            found["fine-tuned", task] = one(model, rows[task], "fine-tuned", task, args)
    return found, time.process_time() - start


def random_like(tokenizer: Any, lengths: np.ndarray, seed: int) -> Encoded:
    """Random tokens in rows of these lengths."""
    generator = torch.Generator().manual_seed(seed)
    rows = [random_tokens(tokenizer, 1, n, n, generator) for n in np.maximum(lengths, 3).tolist()]
    return replace(rows[0], columns={"input_ids": [row[0]["input_ids"] for row in rows]})


def one(model: Any, rows: Any, phase: str, name: str, args: argparse.Namespace) -> Redundancy:
    """One measurement, from --keep where it is there."""
    path = args.keep / f"{phase.replace(' ', '-')}-{name}.npz" if args.keep else None
    if path is not None and path.exists():
        return load_redundancy(path)
    value = hc.redundancy(model, rows, "all", samples=args.limit, seed=args.seed, name=name)
    if path is not None:
        value.save(path)
    print(f"{phase} {name}: {value}", file=sys.stderr)
    return value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default=os.environ.get("HEADCOUNT_MINILM"))
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--finetuned", type=Path, help="a folder with a checkpoint per task")
    parser.add_argument(
        "--like-lengths", action="store_true", help="also random tokens of each task's lengths"
    )
    parser.add_argument("--keep", type=Path, help="a folder for the matrices")
    parser.add_argument("--limit", type=int, default=400, help="inputs per task")
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if not args.model or not args.data:
        parser.error("name the model and --data, or set HEADCOUNT_MINILM and HEADCOUNT_DATA")
    hush()
    found, seconds = measure(args)
    rows = correlations(Drawn(found, args.draws, args.seed))
    rows = sorted(rows + where(found, args.draws, args.seed), key=lambda row: row.claim)
    about = {
        "model": str(args.model),
        "heads": repr(next(iter(found.values())).layout),
        "limit": args.limit,
        "draws": args.draws,
        "seed": args.seed,
        "CPU seconds of measuring": round(seconds),
        "inputs and largest standard error": {
            " ".join(key): (value.count, round(value.largest_error, 4))
            for key, value in found.items()
        },
    }
    if args.json:
        print(json.dumps({**about, "rows": [asdict(row) for row in rows]}, indent=2))
        return 0
    for name, value in about.items():
        print(f"- {name}: {value}")
    for claim in dict.fromkeys(row.claim for row in rows):
        own = [row.verdict for row in rows if row.claim == claim]
        counts = ", ".join(f"{own.count(v)} {v}" for v in dict.fromkeys(own))
        print(f"- {claim}: {counts}")
    print("\n| claim | statistic | value | 95 % | threshold | verdict | note |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        print(row.markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
