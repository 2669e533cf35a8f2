"""Texts embedded a second, from strings to vectors: headcount beside sentence-transformers.

    python benchmarks/speed/embeddings.py [--json] [--model FOLDER] [--texts 512] [--quick]

The same model and texts in turns in one process: `SentenceTransformer.encode`, and the rows of the
task `embedding` encoded and run. The model is FOLDER, a folder of sentence-transformers, or one of
MiniLM's size with random weights. Compared are the medians of the turns, by processor time and by
the clock. Goal: headcount is not slower. `--quick` only sees that it runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer
from transformers import AutoTokenizer, BertConfig, BertModel

from headcount.models.load import load
from headcount.models.sentences import set_pooling
from headcount.models.shipped import locate
from headcount.tasks import Examples, Task, open_task
from headcount.tasks.encoding import encode
from headcount.tasks.kinds import task_kind
from headcount.tasks.loading import load_tokenizer
from headcount.training.evaluate import TOKENS
from headcount.training.forward import run_masks


def build(folder: Path, layers: int) -> Path:
    """A model of MiniLM's size."""
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    config = BertConfig(
        vocab_size=30522,
        hidden_size=384,
        num_hidden_layers=layers,
        num_attention_heads=12,
        intermediate_size=1536,
    )
    model = BertModel(config)
    set_pooling(model, "mean")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def texts_of(count: int) -> list[str]:
    """Texts of 5 to 60 words."""
    sentences = open_task("pocket-paraphrase", size=400).load("train").texts[0]
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(sentences, rng.integers(1, 7))) for _ in range(count)]


def timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    clock, processor = time.perf_counter(), time.process_time()
    result = call()
    return result, time.process_time() - processor, time.perf_counter() - clock


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--texts", type=int, default=512)
    options = parser.parse_args()
    rounds, count = (1, 16) if options.quick else (5, options.texts)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.model or build(Path(scratch), 1 if options.quick else 6)
        texts = texts_of(count)
        other = SentenceTransformer(str(folder), device="cpu")
        model, tokenizer, kind = load(folder), load_tokenizer(folder), task_kind("embedding")
        other.max_seq_length = min(128, tokenizer.model_max_length)
        task = Task(
            name="texts", kind=kind.name, texts=("text",), metrics=kind.metrics,
            loader=lambda split: Examples((texts,)),
        )  # fmt: skip

        def ours() -> np.ndarray:
            rows = encode(task, task.load("dev"), tokenizer, max_length=128)
            return run_masks(model, rows, kind, None, tokens=TOKENS["cpu"])[0]

        turns = []
        for _ in range(rounds):
            vectors, *mine = timed(ours)
            theirs, *peer = timed(lambda: other.encode(texts, normalize_embeddings=True))
            turns.append((*mine, *peer))
    medians = [statistics.median(column) for column in zip(*turns, strict=True)]
    result = {
        "texts": count,
        "difference": float(np.abs(vectors - theirs).max()),
        "texts_per_second": count / medians[1],
        "peer_texts_per_second": count / medians[3],
        "processor_ratio": medians[0] / medians[2],
        "clock_ratio": medians[1] / medians[3],
    }
    print(json.dumps(result) if options.json else "\n".join(f"{k} {v}" for k, v in result.items()))
    return 0 if options.quick or result["processor_ratio"] <= 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
