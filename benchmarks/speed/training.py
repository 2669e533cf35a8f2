"""Training steps, evaluation and many masks against the plain way of doing them.

    HEADCOUNT_MINILM=path/to/all-MiniLM-L6-v2 python benchmarks/speed/training.py [--json] [--quick]
        [PART…]

PART: the first word of a row, `training`, `evaluation`, `every`, `20`; without one, all of them.

Each pair is measured in turns in one process and compared by its fastest turns, by the clock and
by processor time (which other programs on the machine disturb less). Without the weights a random
model of the same size (6 layers x 12 heads x 384) does the same work. `--quick` only sees that it
runs, on one layer.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import transformers
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
)

from headcount.heads import Mask
from headcount.models.find import layout
from headcount.models.shipped import locate
from headcount.tasks import Examples, Task
from headcount.tasks.encoding import encode
from headcount.tasks.loading import hush, load_for_task
from headcount.training.evaluate import evaluate
from headcount.training.finetune import finetune
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring

PLAIN = Scoring(bootstrap=0)
STEPS = 12
"""Training steps in one turn; the first two warm up."""


def subject() -> tuple[Callable[[], Any], Any, str]:
    """(a fresh model, its tokenizer, what it is)."""
    folder = os.environ.get("HEADCOUNT_MINILM")
    if folder:
        words = AutoTokenizer.from_pretrained(folder)
        return lambda: load_for_task(folder, task_of(8, words)), words, "all-MiniLM-L6-v2"
    words = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    words.model_max_length = 512
    config = BertConfig(
        vocab_size=30522,
        hidden_size=384,
        num_hidden_layers=1 if "--quick" in sys.argv else 6,
        num_attention_heads=12,
        intermediate_size=1536,
    )
    return lambda: BertForSequenceClassification(config).eval(), words, "random, MiniLM's size"


def task_of(rows: int, tokenizer: Any, longest: int = 120) -> Task:
    """Rows of mixed lengths: most short, some long, as sentences are."""
    vocabulary = [word for word in tokenizer.get_vocab() if word.isalpha()]

    def load(split: str) -> Examples:
        rng = np.random.default_rng(0)
        sizes = np.clip(rng.lognormal(3.0, 0.7, rows), 4, longest).astype(int)
        texts = [" ".join(rng.choice(vocabulary, size)) for size in sizes]
        return Examples((texts,), rng.integers(0, 2, rows))

    return Task(
        name="mixed lengths",
        kind="classification",
        texts=("text",),
        labels=("0", "1"),
        metrics=("accuracy",),
        loader=load,
    )


Seconds = np.ndarray
"""(by the clock, of processor time)."""


def now() -> Seconds:
    return np.array([time.perf_counter(), time.process_time()])


def clock(run: Callable[[], Any]) -> tuple[Seconds, Any]:
    started = now()
    value = run()
    return now() - started, value


def in_turns(pairs: dict[str, Callable[[], Seconds]], turns: int) -> dict[str, Seconds]:
    """The fastest of several turns for each."""
    best = {name: np.full(2, np.inf) for name in pairs}
    for _ in range(turns):
        for name, run in pairs.items():
            best[name] = np.minimum(best[name], run())
    return best


def training_step(fresh: Callable[[], Any], tokenizer: Any, turns: int) -> dict[str, Seconds]:
    """Seconds a step at batch 32: a bare loop, and finetune, on the same batches."""
    task = task_of(32 * STEPS, tokenizer)
    options = TrainOptions(steps=STEPS, log_every=STEPS - 2)
    rows = encode(task, task.load("train"), tokenizer)
    order = np.random.default_rng((0, 0)).permutation(len(rows))

    def watched(model: Any, run: Callable[[], Any]) -> Seconds:
        """From the third forward pass to the last one: whole steps, with all between them."""
        times: list[Seconds] = []
        hook = model.register_forward_pre_hook(lambda *_: times.append(now()))
        run()
        hook.remove()
        return (times[-1] - times[2]) / (STEPS - 3)

    def bare() -> Seconds:
        model = fresh().train()
        return watched(model, lambda: loop(model))

    def loop(model: Any) -> None:
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, weight_decay=0.0, fused=True)
        schedule = transformers.get_linear_schedule_with_warmup(optimizer, 0, STEPS)
        for step in range(STEPS):
            batch = rows.collate([rows[i] for i in order[32 * step : 32 * step + 32]])
            model(**batch).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()

    def ours() -> Seconds:
        model = fresh()
        settings: dict[str, Any] = {"evaluation": False, "device": "cpu"}
        return watched(
            model, lambda: finetune(model, task, options=options, tokenizer=tokenizer, **settings)
        )

    return in_turns({"bare loop": bare, "finetune": ours}, turns)


def evaluation(fresh: Callable[[], Any], tokenizer: Any, turns: int) -> dict[str, Seconds]:
    """Seconds to score 400 rows: Trainer with its defaults, and evaluate."""
    model, task = fresh(), task_of(400, tokenizer)
    examples = task.load("dev")
    encoded = tokenizer(list(examples.texts[0]), truncation=True, max_length=128)
    names = [name for name in encoded if name != "attention_mask"]
    assert examples.labels is not None
    items = [
        {**{name: encoded[name][i] for name in (*names, "attention_mask")}, "labels": int(label)}
        for i, label in enumerate(examples.labels)
    ]
    arguments = TrainingArguments("unused", use_cpu=True, report_to=[], disable_tqdm=True)
    trainer = Trainer(
        model=model,
        args=arguments,
        processing_class=tokenizer,
        compute_metrics=lambda out: {
            "accuracy": float((out.predictions.argmax(1) == out.label_ids).mean())
        },
    )
    trainer.remove_callback(transformers.PrinterCallback)
    theirs: list[float] = []
    headcounts: list[float] = []

    def plain() -> Seconds:
        seconds, value = clock(lambda: trainer.evaluate(items))  # pyright: ignore[reportArgumentType]
        theirs.append(value["eval_accuracy"])
        return seconds

    def ours() -> Seconds:
        seconds, value = clock(lambda: evaluate(model, task, tokenizer=tokenizer, scoring=PLAIN))
        headcounts.append(value.score)
        return seconds

    best = in_turns({"Trainer.evaluate": plain, "evaluate": ours}, turns)
    assert abs(theirs[0] - headcounts[0]) < 1e-9, "the two must agree"
    return best


def many_masks(
    fresh: Callable[[], Any], tokenizer: Any, rows: int, kind: str, turns: int
) -> dict[str, Seconds]:
    """Seconds for many masks one by one, and in one pass."""
    model, task = fresh(), task_of(rows, tokenizer, longest=60)
    heads = layout(model)
    full, every = Mask.full(heads), list(heads)
    rng = np.random.default_rng(0)
    if kind == "each head":
        masks = [full, *(full.drop([head]) for head in every)]
    else:
        drawn = [rng.permutation(len(every))[: len(every) // 2] for _ in range(20)]
        masks = [full, *(full.drop([every[i] for i in one]) for one in drawn)]
    answers: dict[bool, np.ndarray] = {}

    def run(share: bool) -> Seconds:
        settings = {"tokenizer": tokenizer, "scoring": PLAIN, "share": share}
        seconds, scored = clock(lambda: evaluate(model, task, masks, **settings))
        answers[share] = np.stack([evaluation.predictions["logits"] for evaluation in scored])
        return seconds

    best = in_turns({"one by one": lambda: run(False), "one pass": lambda: run(True)}, turns)
    assert np.abs(answers[True] - answers[False]).max() < 1e-4, "the two must agree"
    return best


def main() -> None:
    hush()
    fresh, tokenizer, what = subject()
    turns = 1 if "--quick" in sys.argv else 4
    about = {
        "model": what,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    results: dict[str, dict[str, Any]] = {}

    def tell(name: str, best: dict[str, Seconds]) -> None:
        (first, slow), (second, fast) = best.items()
        ratio = slow / fast
        results[name] = {key: value.round(4).tolist() for key, value in best.items()}
        results[name]["ratio"] = ratio.round(3).tolist()
        if "--json" not in sys.argv:
            text = f"{first} {slow[0]:.3f} s, {second} {fast[0]:.3f} s"
            print(f"{name:38s} {text}: {ratio[0]:.2f} x, processor {ratio[1]:.2f} x", flush=True)

    if "--json" not in sys.argv:
        print(", ".join(f"{key} {value}" for key, value in about.items()))
    parts: dict[str, Callable[[], dict[str, Seconds]]] = {
        "training step, batch 32": lambda: training_step(fresh, tokenizer, turns),
        "evaluation, 400 rows of mixed length": lambda: evaluation(fresh, tokenizer, turns),
        "every head alone gone, 100 rows": lambda: many_masks(
            fresh, tokenizer, 100, "each head", 2
        ),
        "20 random halves, 100 rows": lambda: many_masks(fresh, tokenizer, 100, "random", 2),
        "every head alone gone, 8 rows": lambda: many_masks(fresh, tokenizer, 8, "each head", 2),
    }
    named = [word for word in sys.argv[1:] if not word.startswith("-")]
    for name, part in parts.items():
        if not named or any(name.startswith(word) for word in named):
            tell(name, part())
    if "--json" in sys.argv:
        print(json.dumps({**about, "results": results}, indent=2))


if __name__ == "__main__":
    main()
