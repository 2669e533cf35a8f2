from __future__ import annotations

import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.costs.pairs import comparable, mask_between
from headcount.heads import Mask
from models.zoo import build, masks


@pytest.mark.parametrize("family", ["bert", "llama", "t5", "albert", "gpt2"])
def test_the_mask_of_a_removal_is_found_again(family: str) -> None:
    model = build(family)
    for mask in masks(hc.layout(model)).values():
        found = mask_between(model, hc.remove(model, mask))
        assert found.kept == mask.kept


def test_an_unpruned_model_keeps_everything() -> None:
    model = build("bert")
    assert mask_between(model, build("bert", seed=1)).sparsity == 0


def test_a_model_pruned_twice_beside_one_pruned_once() -> None:
    model = build("bert")
    once = hc.remove(model, Mask.of(hc.layout(model), [("encoder", i, 2) for i in range(4)]
                                    + [("encoder", 1, 3), ("encoder", 2, 0)]))  # fmt: skip
    keep = Mask.of(hc.layout(once), [("encoder", 0, 0), ("encoder", 1, 1), ("encoder", 2, 1)])
    twice = hc.remove(once, keep)
    assert mask_between(once, twice).kept == keep.kept
    with pytest.raises(UsageError, match="has head encoder"):
        mask_between(twice, once)


def test_other_tops_are_taken_off() -> None:
    from transformers import BertForMaskedLM

    dense = build("bert")
    other = BertForMaskedLM(dense.config).eval()
    mask = masks(hc.layout(other))["uneven"]
    left, right = comparable(dense, hc.remove(other, mask))
    assert type(left).__name__ == type(right).__name__ == "BertModel"
    assert mask_between(left, right).kept == mask.kept
    small = hc.remove(dense, mask)
    assert comparable(dense, small) == (dense, small)


def test_another_architecture_is_refused() -> None:
    with pytest.raises(UsageError, match="GPT2LMHeadModel is no pruned BertForSequence"):
        comparable(build("bert"), build("gpt2"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_hidden_layers": 2}, "2 layers x 4 heads"),
        ({"num_attention_heads": 8}, "4 layers x 8 heads"),
        ({"hidden_size": 64}, "other widths"),
        ({"intermediate_size": 48}, "other widths"),
    ],
)
def test_another_size_is_refused(changes: dict[str, int], words: str) -> None:
    with pytest.raises(UsageError, match=f"not the first with heads removed.*{words}"):
        mask_between(build("bert"), build("bert", **changes))
