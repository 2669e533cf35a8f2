from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from headcount.base.errors import HeadcountError, NotFoundError, UsageError
from headcount.heads import Head, Mask
from headcount.models.find import layout
from headcount.models.gates import gate
from headcount.models.load import load
from headcount.models.remove import remove
from headcount.models.shipped import locate
from headcount.tasks import Task, open_task
from headcount.tasks.encoding import encode
from headcount.tasks.pocket import examples
from headcount.training.evaluate import evaluate
from headcount.training.finetune import finetune
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring
from models.zoo import build

from .conftest import tiny

FAST = TrainOptions(epochs=6, batch_size=16, learning_rate=3e-3, warmup=0.1, log_every=4)
STILL = replace(
    FAST,
    epochs=1,
    attention_dropout=0.0,
    hidden_dropout=0.0,
    clip=0.5,
    epsilon=1e-3,
)
"""No dropout, and an epsilon that keeps Adam from blowing up rounding where gradients are zero:
the same step may be taken in pieces."""


def weights(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])


def test_a_tiny_model_learns_its_task(model: Any, tokenizer: Any, task: Task) -> None:
    trained = finetune(model, task, tokenizer=tokenizer, options=FAST, curve_scores=True)
    assert trained.model is model
    assert trained.evaluation is not None
    assert trained.evaluation.score > 0.9
    assert trained.steps == 36
    losses = [point["loss"] for point in trained.curve if "loss" in point]
    assert len(losses) == 9
    assert losses[-1] < 0.3 < losses[0]
    assert [point["step"] for point in trained.curve if "accuracy" in point] == list(
        range(6, 37, 6)
    )
    assert not model.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_every_epoch_sees_every_row_once(tokenizer: Any, make_task: Callable[..., Task]) -> None:
    from headcount.tasks.kinds.classification import Classification

    seen: list[int] = []
    real = Classification.counts
    task = make_task(rows=50)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Classification,
            "counts",
            lambda kind, labels: seen.append(len(labels)) or real(kind, labels),
        )
        options = replace(FAST, epochs=2, accumulate=4)
        finetune(tiny(tokenizer), task, tokenizer=tokenizer, options=options, evaluation=False)
    assert seen == [4] * 12 + [2] + [4] * 12 + [2]


def test_global_randomness_is_left_alone(model: Any, tokenizer: Any, task: Task) -> None:
    def draw() -> tuple[float, float, float]:
        return random.random(), float(np.random.rand()), float(torch.rand(()))

    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    want = draw()
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])
    finetune(model, task, tokenizer=tokenizer, options=replace(FAST, steps=1), evaluation=False)
    assert draw() == want


@pytest.mark.parametrize(
    "change",
    [{"accumulate": 4}, {"gradient_checkpointing": True}, {"accumulate": 2, "batch_size": 16}],
    ids=str,
)
def test_the_same_step_in_other_ways(change: dict[str, Any], tokenizer: Any, task: Task) -> None:
    results = []
    for options in (STILL, replace(STILL, **change)):
        model = tiny(tokenizer)
        finetune(model, task, tokenizer=tokenizer, options=options, evaluation=False)
        results.append(weights(model))
    torch.testing.assert_close(results[0], results[1], rtol=1e-4, atol=2e-6)
    assert (results[0] - weights(tiny(tokenizer))).abs().max() > 1e-3


def test_seeds_decide_and_nothing_else(tokenizer: Any, task: Task) -> None:
    found = []
    for seed in (0, 0, 1):
        model = tiny(tokenizer)
        options = replace(FAST, steps=5, seed=seed)
        finetune(model, task, tokenizer=tokenizer, options=options, evaluation=False)
        found.append(weights(model))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_frozen_layers_stay_and_the_others_move(tokenizer: Any, task: Task) -> None:
    model, before = tiny(tokenizer), tiny(tokenizer)
    options = replace(FAST, steps=3, freeze=2)
    finetune(model, task, tokenizer=tokenizer, options=options, evaluation=False)
    for (name, now), then in zip(model.named_parameters(), before.parameters(), strict=True):
        lower = "embeddings" in name or ".layer.0." in name or ".layer.1." in name
        assert torch.equal(now, then) == lower, name
        assert now.requires_grad


def test_a_gated_model_is_trained_gated(tokenizer: Any, task: Task) -> None:
    model, before = tiny(tokenizer), tiny(tokenizer)
    mask = Mask.full(layout(model)).drop([Head("encoder", 1, 2)])
    options = replace(FAST, steps=3, gradient_checkpointing=True)
    with gate(model, mask):
        trained = finetune(model, task, tokenizer=tokenizer, options=options)
        gated = trained.evaluation
    assert gated is not None
    assert gated.scores == evaluate(model, task, mask, tokenizer=tokenizer).scores
    # a closed head learns nothing
    now = model.bert.encoder.layer[1].attention.self.value.weight[16:24]
    assert torch.equal(now, before.bert.encoder.layer[1].attention.self.value.weight[16:24])
    moved = model.bert.encoder.layer[1].attention.self.value.weight[:16]
    assert not torch.equal(moved, before.bert.encoder.layer[1].attention.self.value.weight[:16])


def test_a_removed_model_trains_saves_and_loads(tokenizer: Any, task: Task, tmp_path: Path) -> None:
    model = tiny(tokenizer)
    small = remove(model, Mask.parse("310", layout(model)))
    trained = finetune(small, task, tokenizer=tokenizer, options=FAST, out=tmp_path)
    assert trained.evaluation is not None
    assert trained.evaluation.score > 0.8
    again = load(tmp_path)
    assert layout(again)["encoder"].heads == (3, 1, 0)
    assert torch.equal(weights(again), weights(small))
    assert evaluate(again, task).scores == trained.evaluation.scores


def test_a_run_that_is_done_comes_back_whole_or_not_at_all(tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("the small dog sees a big cat .\n" * 8)
    (tmp_path / "dev.txt").write_text("a big cat sees the small dog .\n" * 8)
    task = open_task("causal-lm", data=tmp_path)
    # transformers saves its lm_head under another name
    model, again = (build("gpt-neox", vocab_size=len(tokenizer)) for _ in range(2))
    options = replace(FAST, steps=1, max_length=16)
    settings = {"tokenizer": tokenizer, "options": options, "out": tmp_path / "a"}
    finetune(model, task, evaluation=False, **settings)
    finetune(again, task, evaluation=False, **settings)
    assert torch.equal(weights(model), weights(again))
    file = tmp_path / "a" / "model.safetensors"
    kept = {name: value for name, value in load_file(file).items() if "embed_out" not in name}
    save_file(kept, file, metadata={"format": "pt"})
    with pytest.raises(NotFoundError, match=r"lack lm_head\.weight"):
        finetune(again, task, evaluation=False, **settings)


def test_regression_and_label_smoothing(tokenizer: Any, make_task: Callable[..., Task]) -> None:
    model = tiny(tokenizer, num_labels=1)
    task = make_task("regression")
    trained = finetune(model, task, tokenizer=tokenizer, options=replace(FAST, label_smoothing=0.1))
    assert trained.evaluation is not None
    assert trained.evaluation.score > 0.7


@pytest.mark.parametrize(("family", "name"), [("distilbert", "masked-lm"), ("gpt2", "causal-lm")])
def test_language_models(family: str, name: str, tokenizer: Any, tmp_path: Path) -> None:
    for split in ("train", "dev"):
        (tmp_path / f"{split}.txt").write_text("the small dog sees a big cat .\n" * 64)
    task = open_task(name, data=tmp_path)
    model = build(family, vocab_size=len(tokenizer))
    options = replace(FAST, epochs=8 if name == "masked-lm" else 20, max_length=24)
    before = (
        evaluate(model, task, tokenizer=tokenizer, scoring=Scoring(bootstrap=0)).scores[-1].value
    )
    trained = finetune(model, task, tokenizer=tokenizer, options=options)
    assert trained.evaluation is not None
    assert trained.curve[-1]["loss"] < 0.5 * trained.curve[0]["loss"]
    assert trained.evaluation.scores[-1].value < before / 5


@pytest.mark.parametrize("family", ["t5", "marian"])
def test_translation(family: str, tmp_path: Path) -> None:
    words = AutoTokenizer.from_pretrained(locate("pocket-translator"))
    pairs = examples("pocket-translation", "train", 2)
    for field in ("source", "target"):
        lines = [" ".join(pair[field].split()[:4]) for pair in pairs * 8]
        (tmp_path / f"train.{field}").write_text("\n".join(lines))
    task = open_task("translation", data=tmp_path, languages=("source", "target"))
    special = {"pad_token_id": words.pad_token_id, "eos_token_id": words.eos_token_id}
    start = {"decoder_start_token_id": words.pad_token_id}
    model = build(family, vocab_size=len(words), **special, **start)
    _, batch = next(encode(task, task.load("train"), words).batches())
    with torch.no_grad():
        own = model(**batch).loss  # transformers' loss of the whole data is that of the first step
    options = replace(STILL, epochs=40, learning_rate=6e-3, log_every=1, epsilon=1e-8, clip=1.0)
    trained = finetune(model, task, tokenizer=words, options=options)
    assert trained.curve[0]["loss"] == pytest.approx(own.item(), rel=1e-5)
    assert trained.curve[-1]["loss"] < 0.75 * trained.curve[0]["loss"]
    assert trained.evaluation is not None
    assert trained.evaluation.split == "dev"  # a part of the only file, which was not trained on


def test_a_run_in_a_folder_is_whole_and_not_done_twice(
    tokenizer: Any, task: Task, tmp_path: Path
) -> None:
    options = replace(FAST, epochs=2)
    settings = {"tokenizer": tokenizer, "options": options, "out": tmp_path / "run"}
    first = finetune(tiny(tokenizer), task, **settings)
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "result.json"} <= names
    assert not any(name.startswith(("checkpoint", ".")) for name in names)
    lines = (tmp_path / "run" / "curve.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == list(first.curve)
    loaded = load(tmp_path / "run")
    assert torch.equal(weights(loaded), weights(first.model))
    again = finetune(tiny(tokenizer), task, **settings)
    assert torch.equal(weights(again.model), weights(first.model))
    assert (again.seconds, again.evaluation) == (
        pytest.approx(first.seconds, abs=1e-3),
        replace(first.evaluation, seconds=pytest.approx(first.evaluation.seconds, abs=1e-3)),  # type: ignore[union-attr,type-var]
    )


def test_other_settings_are_refused_by_name_or_overwritten(
    tokenizer: Any, task: Task, make_task: Callable[..., Task], tmp_path: Path
) -> None:
    settings = {"tokenizer": tokenizer, "out": tmp_path, "evaluation": False}
    options = replace(FAST, steps=2)
    finetune(tiny(tokenizer), task, options=options, **settings)
    other = replace(options, learning_rate=1e-5, seed=3)
    with pytest.raises(UsageError) as caught:
        finetune(tiny(tokenizer), task, options=other, **settings)
    text = str(caught.value)
    assert "learning_rate was 0.003, now 1e-05" in text
    assert "seed was 0, now 3" in text
    assert "batch_size" not in text
    with pytest.raises(UsageError, match=r"data was 96 rows .*, now 50 rows"):
        finetune(tiny(tokenizer), make_task(rows=50), options=options, **settings)
    with pytest.raises(UsageError, match=r"weights was .*; config.num_hidden_layers was 3"):
        finetune(build("bert", vocab_size=len(tokenizer)), task, options=options, **settings)
    trained = finetune(tiny(tokenizer), task, options=other, overwrite=True, **settings)
    assert trained.steps == 2


def test_a_loss_that_is_not_a_number_stops_and_keeps_the_checkpoint(
    tokenizer: Any, task: Task, tmp_path: Path
) -> None:
    model = tiny(tokenizer)
    options = replace(FAST, save_every=2, epochs=2)
    count = iter(range(100))

    def spoil(module: Any, args: Any, output: Any) -> Any:
        return output * (float("nan") if next(count) == 4 else 1.0)

    model.classifier.register_forward_hook(spoil)
    with pytest.raises(HeadcountError, match=r"at step 5. The last good checkpoint is .*-4'"):
        finetune(model, task, tokenizer=tokenizer, options=options, out=tmp_path)
    assert (tmp_path / "checkpoint-4" / "model.safetensors").is_file()
    model = tiny(tokenizer)
    model.classifier.register_forward_hook(lambda *a: a[2] * float("inf"))
    with pytest.raises(HeadcountError, match=r"at step 1. No checkpoint was saved yet"):
        finetune(model, task, tokenizer=tokenizer, options=options)


def test_an_unfinished_checkpoint_is_not_gone_on_from(
    tokenizer: Any, task: Task, tmp_path: Path
) -> None:
    options = replace(FAST, save_every=2, epochs=1)
    whole = tiny(tokenizer)
    finetune(whole, task, tokenizer=tokenizer, options=options, evaluation=False)
    stopped = tiny(tokenizer)
    count = iter(range(100))

    def stop(*_: Any) -> None:
        if next(count) == 5:
            raise KeyboardInterrupt

    stopped.register_forward_pre_hook(stop)
    with pytest.raises(KeyboardInterrupt):
        finetune(
            stopped, task, tokenizer=tokenizer, options=options, out=tmp_path, evaluation=False
        )
    (tmp_path / "checkpoint-4" / "whole.json").unlink()
    again = finetune(
        tiny(tokenizer), task, tokenizer=tokenizer, options=options, out=tmp_path, evaluation=False
    )
    assert again.resumed_from == 2
    assert torch.equal(weights(again.model), weights(whole))


def test_wrong_requests(model: Any, tokenizer: Any, task: Task, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="16 rows cannot be cut evenly into 3 pieces"):
        finetune(model, task, tokenizer=tokenizer, options=replace(FAST, accumulate=3))
    with pytest.raises(UsageError, match="has no train split"):
        finetune(model, replace(task, splits=("dev",)), tokenizer=tokenizer)
    with pytest.raises(UsageError, match="no device 'tpu9'"):
        finetune(model, task, tokenizer=tokenizer, device="tpu9")
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        finetune(model, task, tokenizer=tokenizer, out=tmp_path / "file")
    three = replace(task, labels=("cat", "dog", "fish"))
    assert finetune(model, three, tokenizer=tokenizer, options=replace(FAST, steps=1)).steps == 1


def test_a_trained_model_still_generates_with_its_cache(model: Any, tokenizer: Any, task: Task):
    assert model.config.use_cache
    finetune(model, task, tokenizer=tokenizer, options=TrainOptions(steps=1), evaluation=False)
    assert model.config.use_cache  # Trainer switches it off
