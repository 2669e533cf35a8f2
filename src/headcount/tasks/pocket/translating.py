"""Batches for the pocket translator, and its BLEU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from headcount.errors import need_extra
from headcount.tasks.pocket.world import examples

LONGEST = 60  # words of a translation; no sentence of the language needs more


def encode_translations(tokenizer: Any, rows: list[dict[str, Any]]) -> dict[str, Tensor]:
    """Sources as inputs, targets as labels, padded."""
    sources = tokenizer([row["source"] for row in rows], padding=True, return_tensors="pt")
    targets = tokenizer([row["target"] for row in rows], padding=True, return_tensors="pt")
    labels = targets["input_ids"].masked_fill(targets["attention_mask"] == 0, -100)
    return {
        "input_ids": sources["input_ids"],
        "attention_mask": sources["attention_mask"],
        "labels": labels,
    }


def translation_batches(
    tokenizer: Any, *, seed: int, pool: int, size: int, count: int
) -> list[dict[str, Tensor]]:
    """`count` batches of like length from the `pool`-th stretch of the training sentences."""
    rows = examples("pocket-translation", "train", count * size, seed, start=pool * count * size)
    rows.sort(key=lambda row: len(row["target"].split()))
    generator = torch.Generator().manual_seed(seed * 1_000_003 + pool)
    return [
        encode_translations(tokenizer, rows[place * size : (place + 1) * size])
        for place in torch.randperm(count, generator=generator).tolist()
    ]


@torch.inference_mode()
def translate(model: Any, tokenizer: Any, sources: list[str], *, batch: int = 100) -> list[str]:
    """Greedy translations, in order."""
    model.eval()
    # Sentences of like length together: short ones need not wait for long ones.
    order = sorted(range(len(sources)), key=lambda place: len(sources[place].split()))
    found = [""] * len(sources)
    for start in range(0, len(order), batch):
        places = order[start : start + batch]
        inputs = tokenizer([sources[place] for place in places], padding=True, return_tensors="pt")
        words = model.generate(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            max_new_tokens=LONGEST,
            num_beams=1,
            do_sample=False,
        )
        texts = tokenizer.batch_decode(words, skip_special_tokens=True)
        for place, text in zip(places, texts, strict=True):
            found[place] = text
    return found


def bleu(found: list[str], wanted: list[str]) -> float:
    """Corpus BLEU, 0 to 100; the sentences are tokenized already."""
    try:
        import sacrebleu
    except ImportError:
        raise need_extra("sacrebleu", "mt") from None
    scorer = sacrebleu.BLEU(tokenize="none", force=True)
    return float(scorer.corpus_score(found, [wanted]).score)
