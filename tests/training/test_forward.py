from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from headcount.heads import Head, Layout, Mask
from headcount.models.batches import ModelBatch
from headcount.models.find import layout
from headcount.models.gates import gate
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.kinds import task_kind
from headcount.training import forward
from headcount.training.forward import run_masks
from models.zoo import build

FAMILIES: list[tuple[str, str]] = [
    ("bert", "classification"),
    ("distilbert", "masked-lm"),
    ("albert", "masked-lm"),
    ("deberta-v2", "classification"),
    ("modernbert", "masked-lm"),
    ("gpt2", "causal-lm"),
    ("llama", "causal-lm"),
    ("bloom", "causal-lm"),
]


def rows(count: int = 5, words: int = 60) -> EncodedRows:
    rng = np.random.default_rng(0)
    ids = [rng.integers(5, words, rng.integers(3, 12)).tolist() for _ in range(count)]
    return EncodedRows({"input_ids": ids}, [list(row) for row in ids], {"input_ids": 0})


def some_masks(heads: Layout, count: int = 4) -> list[Mask]:
    """The full model, single heads gone, random halves, one of them twice, and no heads."""
    rng = np.random.default_rng(1)
    full, every = Mask.full(heads), list(heads)
    found = [full, Mask.none(heads)]
    found += [full.drop([every[i]]) for i in rng.permutation(len(every))[:count]]
    for _ in range(count):
        found.append(full.drop([every[i] for i in rng.permutation(len(every))[: len(every) // 2]]))
    return [*found, found[3]]


def one_by_one(model: Any, data: EncodedRows, kind: str, masks: list[Mask]) -> list[np.ndarray]:
    """Each mask through hc.gate, each row alone: no padding, no sharing, no tricks."""
    tables = []
    for mask in masks:
        parts = []
        for row in range(len(data)):
            batch = data.collate([data[row]])
            names = {"input_ids", "attention_mask"}
            with torch.no_grad(), gate(model, mask):
                logits = model(**{name: batch[name] for name in names}).logits
            parts.append(task_kind(kind).read(logits, ModelBatch({}, batch["labels"])).numpy())
        tables.append(np.concatenate(parts))
    return tables


@pytest.mark.parametrize(("family", "kind"), FAMILIES)
def test_many_masks_give_what_each_gives_alone(family: str, kind: str) -> None:
    model = build(family)
    data, masks = rows(), some_masks(layout(model))
    want = one_by_one(model, data, kind, masks)
    for tokens, share in itertools.product((24, 400), (True, False)):
        got = run_masks(model, data, task_kind(kind), masks, tokens=tokens, share=share)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4, err_msg=f"{tokens} {share}")
    assert not any(module._forward_pre_hooks for module in model.modules())
    assert not any("forward" in vars(module) for module in model.modules())


@pytest.mark.parametrize(("family", "kind"), FAMILIES)
def test_sharing_is_really_used(family: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(family)
    seen: list[int] = []
    run = forward.Replay.run
    monkeypatch.setattr(
        forward.Replay,
        "run",
        lambda self, inputs, start, **more: seen.append(start) or run(self, inputs, start, **more),
    )
    run_masks(model, rows(), task_kind(kind), some_masks(layout(model)), tokens=400)
    assert seen
    if family != "albert":  # two groups of shared layers: most masks differ from the first call on
        assert max(seen) >= 2


def test_layers_below_the_difference_do_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("bert")
    heads = layout(model)
    full = Mask.full(heads)
    masks = [full, *(full.drop([Head("encoder", 3, i)]) for i in range(4))]
    calls = [0, 0, 0, 0]
    for number, layer in enumerate(model.bert.encoder.layer):
        layer.attention.self.register_forward_pre_hook(
            lambda *_, number=number: calls.__setitem__(number, calls[number] + 1)
        )
    data = rows(20)
    run_masks(model, data, task_kind("classification"), masks, tokens=60)
    batches = len(list(data.batches(60)))
    checked = calls[3]
    calls[:] = [0, 0, 0, 0]
    monkeypatch.setattr(forward, "_holds", lambda *_: True)
    run_masks(model, data, task_kind("classification"), masks, tokens=60)
    # once to learn the order of the calls, then once a batch below layer 3
    assert calls[:3] == [batches + 1] * 3
    assert batches * 2 <= calls[3] - 1 <= batches * 5
    assert checked > calls[3]


def test_a_layer_that_overwrites_its_input_is_noticed() -> None:
    model = build("bert")
    layer = model.bert.encoder.layer[2]
    model.bert.encoder.layer[2].forward = _careless(layer.forward)
    data, masks = rows(), some_masks(layout(model))
    got = run_masks(model, data, task_kind("classification"), masks, tokens=200)
    want = run_masks(model, data, task_kind("classification"), masks, tokens=200, share=False)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def _careless(forward: Any) -> Any:
    def call(hidden: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        answer = forward(hidden, *args, **kwargs)
        hidden.mul_(0.5)
        return answer

    return call


def test_a_model_that_cannot_be_replayed_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("cannot be driven")

    model = build("bert")
    data, masks = rows(), some_masks(layout(model), 2)
    want = run_masks(model, data, task_kind("classification"), masks, tokens=200, share=False)
    monkeypatch.setattr(forward.Replay, "run", refuse)
    got = run_masks(model, data, task_kind("classification"), masks, tokens=200)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_wrong_answers_of_a_replay_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("bert")
    data, masks = rows(), some_masks(layout(model), 2)
    want = run_masks(model, data, task_kind("classification"), masks, tokens=200, share=False)
    run = forward.Replay.run
    # always one layer too late
    monkeypatch.setattr(
        forward.Replay,
        "run",
        lambda self, inputs, start, **more: run(self, inputs, start and start + 1, **more),
    )
    got = run_masks(model, data, task_kind("classification"), masks, tokens=200)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)
