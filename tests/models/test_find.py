from __future__ import annotations

import pytest
import torch

from headcount.base.errors import UsageError
from headcount.heads import Mask
from headcount.models.find import layout, require_layout
from headcount.models.probe import find_probe, relative_difference, run
from headcount.models.remove import remove
from models.zoo import build, unchanged


def test_layout_leaves_a_sparse_model_sparse():
    model = build("big-bird")
    assert len(layout(model)) == 8
    kinds = {type(layer.attention.self).__name__ for layer in model.bert.encoder.layer}
    assert kinds == {"BigBirdBlockSparseAttention"}
    assert model.bert.attention_type == model.config.attention_type == "block_sparse"


def test_a_sparse_model_is_looked_at_while_it_is_sparse(tmp_path):
    from headcount.models.load import load

    model = build("big-bird")
    inputs = find_probe(model, seed=3)
    assert inputs["input_ids"].shape[1] > (5 + 2 * 1) * 2
    mask = Mask.full(layout(model)).drop([("encoder", 0, 1), ("encoder", 1, 2)])
    small = remove(model, mask)
    expected = run(small, inputs)
    assert relative_difference(run(model, inputs), expected) > 1e-3
    small.save_pretrained(tmp_path / "small")
    assert relative_difference(expected, run(load(tmp_path / "small"), inputs)) == 0


def test_a_sparse_model_that_is_too_short_to_be_sparse_gets_a_short_input():
    model = build("big-bird", max_position_embeddings=12)
    assert find_probe(model)["input_ids"].shape[1] == 7


def test_layout_of_a_model_with_two_text_configs():
    model = build("musicgen")
    with unchanged(model):
        found = layout(model)
    assert {stack.name: len(stack.heads) for stack in found.stacks} == {
        "encoder": 4,
        "cross": 2,
        "decoder": 2,
    }


def test_layout_of_a_model_that_no_probe_is_known_for():
    bert = build("bert")

    class Strange(type(bert)):
        def forward(self, something):
            return super().forward(something)

    bert.__class__ = Strange
    assert len(layout(bert)) == 16


def test_a_mask_for_another_model_is_refused():
    with pytest.raises(UsageError, match="another layout"):
        require_layout(build("bert"), layout(build("gpt2")))
    assert torch.is_grad_enabled()


def test_a_layout_takes_one_pass_and_failed_probes_do_not_count():
    model = build("bert")
    passes = []
    model.register_forward_pre_hook(lambda *_: passes.append(None))
    assert layout(model)["encoder"].uses == (1, 1, 1, 1)
    assert len(passes) == 1
    picky = build("bert")
    find_probe(known := build("bert"))
    assert layout(known) == layout(model)  # a probe that is known runs once more

    def refuse(_module, _args, kwargs, _out):
        if "attention_mask" in kwargs:
            raise ValueError

    picky.register_forward_hook(refuse, with_kwargs=True)
    assert layout(picky)["encoder"].uses == (1, 1, 1, 1)
