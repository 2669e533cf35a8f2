"""Models opened from their names."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer

from headcount.base.errors import NotFoundError, UnsupportedError, UsageError
from headcount.models.model_options import ModelOptions
from headcount.models.shipped import locate
from headcount.tasks import open_task
from headcount.tasks.in_memory import task
from headcount.tasks.opening import load, open_model, open_several
from models.zoo import build
from training.conftest import tiny

CPU = ModelOptions(device="cpu")


def test_the_head_is_that_of_the_task(tmp_path: Path):
    assert type(load("pocket-bert")).__name__ == "BertForPreTraining"
    assert type(load("pocket-bert", task="embedding")).__name__ == "BertModel"
    assert type(load("pocket-bert", task="masked-lm")).__name__ == "BertForMaskedLM"
    with pytest.raises(UsageError, match="without a head for classification"):
        load("pocket-bert", task="pocket-sentiment")
    with pytest.raises(NotFoundError, match="classifier"):
        load("pocket-bert", task="classification")
    rows = [{"text": f"x{number}", "y": ["no", "yes", "well"][number % 3]} for number in range(9)]
    mine = task(rows, kind="classification", columns="text", label="y")
    model = load("pocket-bert", task=mine, new_head=True)
    assert model.config.id2label == {0: "no", 1: "well", 2: "yes"}
    model.save_pretrained(tmp_path)
    again = load(tmp_path, task=mine)
    assert torch.equal(again.classifier.weight, model.classifier.weight)
    with pytest.raises(UsageError, match=r"There is no task 'clasification'. Did you mean 'class"):
        load("pocket-bert", task="clasification")
    with pytest.raises(UsageError, match=r"A task is a name .* or a Task, not 5"):
        load("pocket-bert", task=5)  # pyright: ignore[reportArgumentType]


def test_without_words_a_model_needs_no_tokenizer(tmp_path: Path):
    build("bert").save_pretrained(tmp_path)
    model, tokenizer, fresh = open_model(str(tmp_path), CPU)
    assert (model.device.type, tokenizer, fresh) == ("cpu", None, False)
    with pytest.raises(NotFoundError, match="No tokenizer"):
        open_model(str(tmp_path), CPU, reads=True)
    with pytest.raises(NotFoundError, match="nowhere"):
        open_model(str(tmp_path), ModelOptions(device="cpu", tokenizer="./nowhere"))


def test_a_model_of_images_reads_no_text(tmp_path: Path):
    build("vit").save_pretrained(tmp_path)
    assert open_model(str(tmp_path), CPU)[1] is None
    assert open_model(str(tmp_path), CPU, reads=True)[1] is None  # noise needs no processor
    with pytest.raises(UnsupportedError, match="reads images"):
        open_model(str(tmp_path), CPU, open_task("pocket-sentiment"), reads=True)


def test_a_new_head_is_drawn_by_the_seed():
    task = open_task("pocket-sentiment")
    with pytest.raises(UsageError, match="without a head for classification"):
        open_model("pocket", CPU, task)
    heads = [
        open_model("pocket", CPU, task, trains=True, seed=seed)[0].classifier.weight
        for seed in (0, 0, 1)
    ]
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])


def test_two_models_have_one_tokenizer(tmp_path: Path):
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    for name in ("one", "two"):
        tiny(tokenizer).save_pretrained(tmp_path / name)
    names = [str(tmp_path / name) for name in ("one", "two")]
    with pytest.raises(NotFoundError, match="No tokenizer"):
        open_several(names, CPU)
    tokenizer.save_pretrained(tmp_path / "two")
    models, found = open_several(names, CPU)
    assert len(models) == 2
    assert found.get_vocab() == tokenizer.get_vocab()
    tokenizer.add_tokens(["another"])
    tokenizer.save_pretrained(tmp_path / "one")
    with pytest.raises(UsageError, match="their tokenizers do not agree"):
        open_several(names, CPU)
    assert len(open_several(names, ModelOptions(tokenizer=names[1]))[1]) == len(found)
