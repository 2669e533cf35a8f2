"""A text scored in windows, and choices by their likelihood: headcount beside lm-eval.

    python benchmarks/speed/language.py [--json] [--quick] [--model FOLDER] [--windows 8]
        [--rows 32] [--rounds 3] [--text FILE] [--choices FILE --columns PROMPT FIRST SECOND]

The same model and rows in turns in one process: strings to log-likelihoods with lm-eval's `HFLM`,
in two sizes of its batches of which the faster counts, and with `hc.evaluate`. The model is FOLDER,
or a decoder of SmolLM2's width with random weights; text and choices are the files, as tasks take
them, or generated. The numbers must be the same. Compared are the medians of the turns, by
processor time and by the clock. Goal: headcount is not slower. `--quick` only sees that it runs.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import lm_eval
import numpy as np
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from headcount.models.load import load
from headcount.models.shipped import locate
from headcount.tasks import Examples, Task, open_task
from headcount.tasks.loading import load_tokenizer
from headcount.training.evaluate import evaluate
from headcount.training.scoring import Scoring

BATCHES = (1, 8)
"""Sizes of the batches that lm-eval is tried with; its default is 1."""


def build(folder: Path, layers: int) -> Path:
    """A decoder of SmolLM2's width; its tokenizer adds nothing to a text."""
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    tokenizer.backend_tokenizer.post_processor = None
    tokenizer.bos_token, tokenizer.eos_token = "[CLS]", "[SEP]"
    tokenizer.model_max_length = 2048
    config = LlamaConfig(
        vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=layers,
        num_attention_heads=9, num_key_value_heads=3, bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def sentences() -> list[str]:
    """Generated ones."""
    return list(map(str, open_task("pocket-paraphrase", size=400).load("train").texts[0]))


def generated(folder: Path, count: int) -> Path:
    """Prompts with two choices of 3 to 40 words."""
    rng, texts = np.random.default_rng(0), sentences()
    with (folder / "rows.jsonl").open("w") as file:
        for _ in range(count):
            prompt, *choices = (" ".join(rng.choice(texts, rng.integers(1, 5))) for _ in range(3))
            row = {"prompt": prompt, "choices": choices, "answer": int(rng.integers(2))}
            file.write(json.dumps(row) + "\n")
    return folder / "rows.jsonl"


def text_of(words: Sequence[str], tokenizer: Any, tokens: int) -> str:
    """Words of exactly so many tokens, filled up with " the", so that no window is shorter."""
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        fits = len(tokenizer(" ".join(words[:middle])).input_ids) <= tokens
        low, high = (middle, high) if fits else (low, middle - 1)
    text = " ".join(words[:low])
    text += " the" * (tokens - len(tokenizer(text).input_ids))
    assert len(tokenizer(text).input_ids) == tokens
    return text


def timed(call: Callable[[], object]) -> list[float]:
    """Processor time and the clock's."""
    clock, processor = time.perf_counter(), time.process_time()
    call()
    return [time.process_time() - processor, time.perf_counter() - clock]


def beside(
    ours: Callable[[], np.ndarray], peers: Sequence[Callable[[], np.ndarray]], rounds: int
) -> dict[str, float]:
    """Medians of ours and of the peer that is faster, as ratios; all give the same numbers."""
    wanted = ours()  # and what is only done once
    for peer in peers:
        np.testing.assert_allclose(peer(), wanted, rtol=1e-4)
    turns: list[list[list[float]]] = []
    for _ in range(rounds):
        turns.append([timed(call) for call in (ours, *peers)])
    (processor, clock), *others = np.median(np.array(turns), axis=0).tolist()
    best = min(others)
    return {
        "seconds": clock,
        "peer_seconds": best[1],
        "peer_batch": BATCHES[others.index(best)],
        "processor_ratio": processor / best[0],
        "clock_ratio": clock / best[1],
    }


def windows(model: Any, tokenizer: Any, text: str, size: int, rounds: int) -> dict[str, float]:
    """A text in windows: the harness predicts all tokens behind a first one that it is given."""

    texts = [tokenizer.bos_token + text]
    task = Task(
        name="text", kind="causal-lm", texts=("text",), metrics=("perplexity",), packed=True,
        loader=lambda split: Examples((texts,)), window=size, stride=size - 1,
    )  # fmt: skip

    def ours() -> np.ndarray:
        found = evaluate(model, task, tokenizer=tokenizer, scoring=Scoring(bootstrap=0))
        return np.array([sum(found.predictions["nll"])])

    def peer(batch: int) -> Callable[[], np.ndarray]:
        # its length is that of the inputs, and a last token is only predicted
        writer = wrapped(model, tokenizer, batch, max_length=size - 1)
        request = Instance("loglikelihood_rolling", {}, (text,), 0)
        return lambda: -np.array(writer.loglikelihood_rolling([request]))

    return beside(ours, [peer(batch) for batch in BATCHES], rounds)


def wrapped(model: Any, tokenizer: Any, batch: int, **more: Any) -> Any:
    """The harness around a model."""
    kind: Any = HFLM
    return kind(pretrained=model, tokenizer=tokenizer, batch_size=batch, **more)


def choices(model: Any, tokenizer: Any, task: Any, limit: int, rounds: int) -> dict[str, float]:
    """Choices behind their prompts."""
    scoring = Scoring(bootstrap=0, limit=limit)
    examples = task.load(task.evaluation, limit=limit, seed=scoring.seed)
    pairs = [
        (prompt, f" {choice}")
        for prompt, texts in zip(*examples.texts, strict=True)
        for choice in json.loads(texts)
    ]

    def ours() -> np.ndarray:
        found = evaluate(model, task, tokenizer=tokenizer, scoring=scoring)
        return np.concatenate([json.loads(row) for row in found.predictions["log_likelihoods"]])

    def peer(batch: int) -> Callable[[], np.ndarray]:
        writer = wrapped(model, tokenizer, batch)
        requests = [Instance("loglikelihood", {}, pair, 0) for pair in pairs]
        return lambda: np.array([
            value for value, _ in writer.loglikelihood(requests)
        ])  # fmt: skip

    return beside(ours, [peer(batch) for batch in BATCHES], rounds)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--choices", type=Path)
    parser.add_argument("--columns", nargs="+", default=())
    parser.add_argument("--windows", type=int, default=8)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.quick:
        options.windows, options.rows, options.rounds = 2, 4, 1
    size = 64 if options.quick else 512
    with tempfile.TemporaryDirectory() as scratch, redirect_stderr(io.StringIO()):
        folder = options.model or build(Path(scratch), 1 if options.quick else 6)
        model, tokenizer = load(folder, head="text"), load_tokenizer(folder)
        words = options.text.read_text().split() if options.text else " ".join(sentences()).split()
        text = text_of(words, tokenizer, options.windows * (size - 1))
        rows = options.choices or generated(Path(scratch), 3 * options.rows)
        task = open_task("multiple-choice", data=rows, columns=options.columns)
        result = {
            "lm_eval": lm_eval.__version__,
            "windows": windows(model, tokenizer, text, size, options.rounds),
            "choices": choices(model, tokenizer, task, options.rows, options.rounds),
        }
    if options.json:
        print(json.dumps(result))
    else:
        print(f"lm_eval {result['lm_eval']}")
        for part in ("windows", "choices"):
            for name, value in result[part].items():
                print(f"{part} {name} {value:.4g}")
    slower = [part for part in ("windows", "choices") if result[part]["processor_ratio"] > 1]
    return 1 if slower and not options.quick else 0


if __name__ == "__main__":
    raise SystemExit(main())
