"""LoRA as a repair; what it shares with distillation is tested in `test_distillation.py`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

import headcount as hc
from headcount.base.errors import HeadcountError, MissingExtraError, UsageError
from headcount.models.adapters import adaptable_layers
from headcount.repair.distillation import distil, distil_rows
from headcount.repair.lora import Lora
from headcount.training.checkpoints import Saver
from repair.test_distillation import pair_of, rows

OPTIONS = Lora(steps=30, batch_size=8, learning_rate=1e-2, hold_back=0.25, rank=2)


def weights(model: Any) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def test_what_cannot_be_is_refused():
    for wrong, words in [
        ({"rank": 0}, "rank of an adapter is at least 1, not 0"),
        ({"adapt": "heads"}, "all or attention, not 'heads'"),
        ({"hidden": -1.0}, "not negative: -1"),
    ]:
        with pytest.raises(UsageError, match=words):
            Lora(**wrong)


@pytest.mark.parametrize("family", ["bert", "bert-base", "llama", "gpt2", "t5"])
def test_it_comes_nearer_to_the_full_model_by_changes_of_low_rank(family, tmp_path):
    small, full = pair_of(family)
    small_before, full_before = weights(small), weights(full)
    made = distil_rows(small, full, rows(), options=OPTIONS, device="cpu")
    assert made.kept
    assert made.after < 0.95 * made.before
    assert all(torch.equal(value, full_before[name]) for name, value in full.state_dict().items())
    ranks = {}
    for name, value in small.state_dict().items():
        change = (value - small_before[name]).double()
        if change.any():
            sizes = torch.linalg.svdvals(change)
            ranks[name] = int((sizes > 1e-4 * sizes[0]).sum())
    assert {*ranks} <= {f"{name}.weight" for name in adaptable_layers(small)}
    assert len(ranks) > 4
    assert max(ranks.values()) == 2
    assert not small.training
    assert all(p.requires_grad and p.grad is None for p in small.parameters())
    small.save_pretrained(tmp_path)
    again = hc.load(tmp_path)
    assert all(
        torch.equal(value, small.state_dict()[name]) for name, value in weights(again).items()
    )


def test_attention_alone():
    small, full = pair_of("bert")
    before = weights(small)
    distil(small, full, rows(), options=replace(OPTIONS, adapt="attention"), device="cpu")
    changed = [
        name for name, value in weights(small).items() if not torch.equal(value, before[name])
    ]
    assert len(changed) == 4 * 3  # one layer has no heads
    assert all(".attention." in name for name in changed)
    none = hc.remove(full, hc.Mask.none(hc.layout(full)))
    with pytest.raises(
        UsageError, match="no attention left that LoRA could adapt: take --adapt all"
    ):
        distil(none, full, rows(), options=replace(OPTIONS, adapt="attention"), device="cpu")
    distil(none, full, rows(), options=OPTIONS, device="cpu")


def test_resumed_is_uninterrupted_and_done_is_not_done_again(tmp_path, monkeypatch):
    options = replace(OPTIONS, steps=6, save_every=2)

    def made(work):
        small, full = pair_of("bert")
        return distil_rows(small, full, rows(), options=options, work=work, device="cpu"), small

    whole, expected = made(None)
    plain = Saver.on_save

    def save(self, args, state, control, **more):
        plain(self, args, state, control, **more)
        if state.global_step == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Saver, "on_save", save)
        with pytest.raises(KeyboardInterrupt):
            made(tmp_path / "work")
    resumed, small = made(tmp_path / "work")
    assert resumed == replace(whole, resumed_from=4)
    again, once_more = made(tmp_path / "work")
    assert again == resumed
    for name, value in expected.state_dict().items():
        assert torch.equal(small.state_dict()[name], value), name
        assert torch.equal(once_more.state_dict()[name], value), name
    options = replace(options, rank=3)
    with pytest.raises(UsageError, match="rank was 2, now 3"):
        made(tmp_path / "work")


def test_a_loss_that_is_no_number_leaves_the_model_as_it_was():
    small, full = pair_of("bert")
    before = weights(small)
    with torch.no_grad():
        full.classifier.weight[0, 0] = float("nan")
    with pytest.raises(HeadcountError, match="not a number"):
        distil(small, full, rows(), options=OPTIONS, device="cpu")
    assert all(torch.equal(value, before[name]) for name, value in small.state_dict().items())


def test_without_peft_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("headcount.base.extras.missing_of", lambda name: ("peft",))
    with pytest.raises(MissingExtraError, match=r"headcount\[lora\]"):
        distil(*pair_of("bert"), rows(), options=OPTIONS, device="cpu")
