"""A tiny BERT and a task it learns in seconds: does a sentence speak of a cat or of a dog?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

from headcount.models.shipped import locate
from headcount.tasks import Examples, Task

WORDS = "the a small big young king queen baker near with".split()  # noqa: SIM905


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(locate("pocket-bert"))


def tiny(tokenizer: Any, **changes: Any) -> BertForSequenceClassification:
    settings = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": 64,
        "pad_token_id": tokenizer.pad_token_id,
        **changes,
    }
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertForSequenceClassification(BertConfig(**settings))
        # fresh weights are so small that heads hardly matter
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2 and "embeddings" not in name:
                torch.nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
    return model.eval()


@pytest.fixture
def model(tokenizer: Any) -> BertForSequenceClassification:
    return tiny(tokenizer)


def pets(kind: str = "classification", rows: int = 96) -> Task:
    """Rows of 4 to 12 words with one `cat` or `dog` among them."""

    def load(split: str) -> Examples:
        rng = np.random.default_rng({"train": 1, "dev": 2}[split])
        labels = rng.integers(0, 2, rows)
        texts = []
        for label in labels:
            words = list(rng.choice(WORDS, rng.integers(3, 12)))
            words.insert(int(rng.integers(len(words))), ["cat", "dog"][label])
            texts.append(" ".join(words))
        return Examples((texts,), labels.astype(float) if kind == "regression" else labels)

    if kind == "regression":
        return Task(
            name="pets", kind="regression", texts=("text",), metrics=("spearman",), loader=load
        )
    return Task(
        name="pets",
        kind="classification",
        texts=("text",),
        labels=("cat", "dog"),
        metrics=("accuracy", "matthews"),
        loader=load,
    )


@pytest.fixture
def task() -> Task:
    return pets()


def interrupt(model: Any, at: int) -> Any:
    """The model, interrupted in this forward pass of its training, counted from 0."""
    count = iter(range(10**6))

    def stop(module: Any, args: Any) -> None:
        if module.training and next(count) == at:
            raise KeyboardInterrupt

    model.register_forward_pre_hook(stop)
    return model


@pytest.fixture
def make_task() -> Callable[..., Task]:
    return pets
