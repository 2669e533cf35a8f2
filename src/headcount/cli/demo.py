"""`headcount demo`: the main job on a small model, offline, each command shown before it runs."""

from __future__ import annotations

import shlex
from pathlib import Path

from headcount.cli.common import say
from headcount.errors import HeadcountError, UsageError

STEPS = (
    "inspect {dense}",
    "remove {dense} --keep 777322 --out {small}",
    "inspect {small}",
    "bench {dense} {small} --batch 8 --length 64 --no-onnx",
    "export {small} --to zeroed --out {plain}",
)


def demo(*, out: Path = Path("demo")) -> None:
    """Inspect a small model, take 20 of its 48 heads out, time it, and write it for others.

    The model has random weights: what is shown is the tool, not a result.

    Parameters
    ----------
    out
        The folder to write; it must be new or empty.
    """
    from headcount.cli.main import main

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is there already; --out takes a new or empty folder.")
    write_model(out / "dense")
    folders = {"dense": out / "dense", "small": out / "small", "plain": out / "plain"}
    for step in STEPS:
        words = [word.format(**folders) for word in shlex.split(step)]
        say(f"\n$ headcount {shlex.join(words)}")
        if main(words):
            raise HeadcountError(f"The demo stopped at: headcount {shlex.join(words)}")
    say(f"\nDone. The smaller model is in {out / 'small'}, with a card: {out / 'small/README.md'}")


def write_model(folder: Path) -> None:
    """A BERT of 6 layers x 8 heads with random weights."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    from headcount.models.bars import bars_on_terminals_only

    config = BertConfig(
        vocab_size=1000,
        hidden_size=256,
        num_hidden_layers=6,
        num_attention_heads=8,
        intermediate_size=512,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertForSequenceClassification(config)
    with bars_on_terminals_only():
        model.save_pretrained(folder)
