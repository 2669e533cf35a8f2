"""Measure that the pocket tasks need attention, and print the table of the folder's README.

    python -m headcount.tasks.pocket.measure                          # every task, on dev
    python -m headcount.tasks.pocket.measure --tasks pocket-sentiment pocket-translation

Each task is fine-tuned on 4,000 examples, 3 epochs, AdamW 3e-4, batch 32, and scored on 1,000.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from headcount.models.shipped import locate
from headcount.tasks.pocket import POCKET_TASKS, examples
from headcount.tasks.pocket.bags import bag_of_words
from headcount.tasks.pocket.cutting import heads_cut, projections, random_cuts
from headcount.tasks.pocket.probing import Tuning, classifier, fine_tune, rate
from headcount.tasks.pocket.translating import bleu, translate

SHARES = (0.25, 0.5, 0.75)
DRAWS = 5  # random cuts that a figure is the mean of
HEADS = 8
STACKS = {
    "no encoder heads": r"encoder\.layers",
    "no cross heads": r"encoder_attn",
    "no decoder heads": r"decoder\.layers\.\d+\.self_attn",
}


def measure_task(
    task: str, folder: Path, *, train: int = 4000, dev: int = 1000, tuning: Tuning | None = None
) -> dict[str, float]:
    """All figures of one classification or regression task."""
    from transformers import AutoTokenizer

    tuning = tuning or Tuning()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows, tests = examples(task, "train", train), examples(task, "dev", dev)
    figures = {
        "words": bag_of_words(task, rows, tests),
        "bigrams": bag_of_words(task, rows, tests, ngrams=2),
    }
    full = classifier(task, folder)
    nothing = torch.zeros(len(projections(full)), HEADS)
    fine_tune(full, task, tokenizer, rows, tuning)
    figures["full"] = rate(full, task, tokenizer, tests)
    generator = torch.Generator().manual_seed(tuning.seed)
    for share in SHARES:
        figures[f"cut {share:.0%}"] = fmean(
            _rate_cut(full, task, tokenizer, tests, cut)
            for cut in _cuts(len(nothing), share, generator)
        )
    figures["cut 100%"] = _rate_cut(full, task, tokenizer, tests, nothing)

    headless = classifier(task, folder)
    with heads_cut(headless, nothing):
        fine_tune(headless, task, tokenizer, rows, tuning)
        figures["no heads"] = rate(headless, task, tokenizer, tests)
    half = classifier(task, folder)
    with heads_cut(half, random_cuts(len(nothing), HEADS, 0.5, generator)):
        fine_tune(half, task, tokenizer, rows, tuning)
        figures["half"] = rate(half, task, tokenizer, tests)
    untrained = classifier(task, folder, pretrained=False)
    fine_tune(untrained, task, tokenizer, rows, tuning)
    figures["untrained"] = rate(untrained, task, tokenizer, tests)
    return figures


def _cuts(layers: int, share: float, generator: torch.Generator) -> list[torch.Tensor]:
    return [random_cuts(layers, HEADS, share, generator) for _ in range(DRAWS)]


def _rate_cut(model: Any, task: str, tokenizer: Any, rows: Any, keep: torch.Tensor) -> float:
    with heads_cut(model, keep):
        return rate(model, task, tokenizer, rows)


def measure_translation(folder: Path, *, dev: int = 500) -> dict[str, float]:
    """BLEU of the translator, whole and cut."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder)
    rows = examples("pocket-translation", "dev", dev)
    sources, targets = [row["source"] for row in rows], [row["target"] for row in rows]

    def cut(keep: torch.Tensor, only: str = "") -> float:
        with heads_cut(model, keep, only=only):
            return bleu(translate(model, tokenizer, sources), targets)

    layers = len(projections(model))
    figures = {"full": bleu(translate(model, tokenizer, sources), targets)}
    generator = torch.Generator().manual_seed(0)
    for share in SHARES:
        figures[f"cut {share:.0%}"] = fmean(cut(keep) for keep in _cuts(layers, share, generator))
    figures["cut 100%"] = cut(torch.zeros(layers, HEADS))
    for name, only in STACKS.items():
        figures[name] = cut(torch.zeros(len(projections(model, only=only)), HEADS), only)
    return figures


def table(figures: dict[str, dict[str, float]]) -> str:
    """A Markdown table, one row per task."""
    columns = list(next(iter(figures.values())))
    lines = ["| task | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, row in figures.items():
        cells = (f"{row[column]:.{1 if 'translation' in name else 3}f}" for column in columns)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """The command: figures go to stdout as they come."""
    parser = argparse.ArgumentParser(prog="python -m headcount.tasks.pocket.measure")
    known = [task.name for task in POCKET_TASKS.values() if task.kind != "masked-lm"]
    parser.add_argument("--tasks", nargs="+", choices=known, default=known)
    parser.add_argument("--weights", type=Path, help="a folder build wrote (default: as shipped)")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (default 2)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)

    def folder(name: str) -> Path:
        return Path(locate(name)) if options.weights is None else options.weights / name

    for task in options.tasks:
        if task == "pocket-translation":
            figures = measure_translation(folder("pocket-translator"))
        else:
            figures = measure_task(task, folder("pocket-bert"))
        sys.stdout.write(table({task: figures}))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
