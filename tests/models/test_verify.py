from __future__ import annotations

import pytest
import torch
from transformers import BertConfig, BertModel

from headcount.base.errors import UnsupportedError
from headcount.heads import Mask
from headcount.models import cut, verify
from headcount.models.find import layout
from headcount.models.gates import gate
from headcount.models.probe import find_probe, relative_difference, run
from headcount.models.remove import remove
from headcount.models.verify import Answers, as_rows, compare, in_float64, largest
from models.zoo import build, masks, shake, shallow


@pytest.fixture(params=["copied", "shared", "as it is"])
def judged(request, monkeypatch):
    """In float64 by a copy, or by what a large model gets, and a model that does not run in it."""
    if request.param == "shared":
        monkeypatch.setattr(verify, "COPIED", 0)
    if request.param == "as it is":
        monkeypatch.setattr(verify, "in_float64", refuse)
    return request.param


def refuse(model):
    raise RuntimeError("it mixes in numbers of a fixed type")


@pytest.fixture
def wrong_heads(monkeypatch):
    right = cut.rows_of

    def wrong(kind, kept, heads, groups, head_dim):
        shift = heads // groups if groups > 1 else 1
        return right(kind, sorted((head + shift) % heads for head in kept), heads, groups, head_dim)

    monkeypatch.setattr(cut, "rows_of", wrong)


def with_huge_activations() -> tuple[BertModel, Mask]:
    """What the kept heads of layer 0 add is a small difference of large numbers."""
    config = BertConfig(
        vocab_size=61,
        hidden_size=256,
        num_hidden_layers=2,
        num_attention_heads=8,
        intermediate_size=40,
        max_position_embeddings=64,
    )
    torch.manual_seed(0)
    model = shake(BertModel(config)).eval()
    full = layout(model)
    mask = Mask(full, frozenset(head for head in full if head.index % 2))
    attention = model.encoder.layer[0].attention
    kept = torch.arange(256) // 32 % 2 == 1
    with torch.no_grad():
        attention.self.value.bias.fill_(1e4)
        attention.output.dense.bias.copy_(-attention.output.dense.weight[:, kept].sum(1) * 1e4)
    return model, mask


def test_rounding_of_huge_activations_is_no_reason_to_refuse(judged):
    model, mask = with_huge_activations()
    small = remove(model, mask)
    inputs = find_probe(model)
    with gate(model, mask):
        expected = run(model, inputs)
    # float32 alone is this far off: more than the flat number that was allowed
    assert relative_difference(expected, run(small, inputs)) > 1e-5
    wide = in_float64(model)
    with gate(wide, mask):
        expected = run(wide, inputs)
    assert relative_difference(expected, run(in_float64(small), inputs)) < 1e-9


def test_wrong_heads_are_noticed_beside_huge_activations(judged, wrong_heads):
    model, mask = with_huge_activations()
    with pytest.raises(UnsupportedError, match=r"differ from the masked model's by .* rounding"):
        remove(model, mask)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("family", ["bert", "llama", "t5"])
def test_wrong_heads_are_noticed_in_every_number_type(family, dtype, judged, wrong_heads):
    model = build(family, **shallow(family, 2)).to(dtype)
    with pytest.raises(UnsupportedError, match="differ from the masked model's"):
        remove(model, masks(layout(model))["whole groups"])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("family", ["bert", "llama", "t5"])
def test_right_heads_are_accepted_in_every_number_type(family, dtype, judged):
    model = build(family, **shallow(family, 2)).to(dtype)
    mask = masks(layout(model))["alternate layers emptied"]
    assert remove(model, mask).dtype == dtype


def test_a_token_with_huge_numbers_does_not_hide_the_others():
    expected = Answers([torch.tensor([[1e6, 1.0], [1.0, 2.0]])], {})
    found = Answers([torch.tensor([[1e6, 1.0], [1.0, 2.001]])], {})
    assert relative_difference(expected.final, found.final) < 1e-8
    excess, difference = compare(expected, found, lambda key, index, rows: 1e-6 * largest(rows))
    assert excess == pytest.approx(500, rel=1e-3)
    assert difference == pytest.approx(5e-4, rel=1e-3)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_not_equal(value):
    expected = Answers([torch.tensor([1.0, 2.0])], {})
    found = Answers([torch.tensor([1.0, value])], {})
    assert compare(expected, found, lambda key, index, rows: largest(rows))[0] == float("inf")
    assert compare(found, expected, lambda key, index, rows: largest(rows))[0] == float("inf")


def test_other_shapes_are_not_equal():
    expected = Answers([torch.ones(2, 3)], {})
    for other in (torch.ones(3, 2), torch.ones(2, 4)):
        found = Answers([other], {})
        assert compare(expected, found, lambda key, index, rows: largest(rows))[0] == float("inf")
    assert as_rows(torch.tensor(3.0)).shape == (1, 1)


def test_a_model_that_cannot_run_in_float64_is_judged_as_it_is():
    model = build("bert")
    forward = type(model.bert.embeddings).forward

    class Fixed(type(model.bert.embeddings)):
        """Embeddings in float32 whatever the rest is, as some models have them."""

        def forward(self, *args, **kwargs):
            return forward(self, *args, **kwargs).float()

    model.bert.embeddings.__class__ = Fixed
    with pytest.raises(RuntimeError):
        run(in_float64(model), find_probe(model))
    small = remove(model, masks(layout(model))["uneven"])
    assert len(layout(small)) == 12


def test_a_copy_in_float64_keeps_tied_weights_tied():
    model = build("bart")
    wide = in_float64(model)
    assert wide.dtype == torch.float64
    assert wide.lm_head.weight is wide.model.shared.weight
    assert model.dtype == torch.float32
