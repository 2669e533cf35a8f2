from __future__ import annotations

import pytest
import torch
from torch import nn

from headcount.base.errors import UnsupportedError
from headcount.models.dropout import set_dropout
from headcount.models.find import layout
from headcount.models.remove import remove
from models.zoo import build, masks


def rates(model: nn.Module) -> dict[str, float]:
    found = {}
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, float) and ("drop" in name or isinstance(module, nn.Dropout)):
                found[f"{path}:{name}"] = value
    return found


@pytest.mark.parametrize(
    ("family", "attention", "hidden"),
    [
        ("bert", "attention.self.dropout:p", "output.dropout:p"),
        ("distilbert", "attention.dropout:p", "ffn.dropout:p"),
        ("gpt2", "attn.attn_dropout:p", "mlp.dropout:p"),
        ("bart", "self_attn:dropout", "layers.0:dropout"),
        ("modernbert", "attn:attention_dropout", "mlp.drop:p"),
        ("deberta-v2", "attention.self.dropout:p", "output.dropout:p"),
    ],
)
def test_each_kind_changes_its_own_places_only(family: str, attention: str, hidden: str) -> None:
    model = build(family)
    before = rates(model)
    set_dropout(model, attention=0.37)
    now = rates(model)
    changed = {place for place in now if now[place] == 0.37}
    assert any(place.endswith(attention) for place in changed)
    assert not any(place.endswith(hidden) for place in changed)
    assert all(now[place] == before[place] for place in before if place not in changed)
    set_dropout(model, hidden=0.23)
    after = rates(model)
    assert all(after[place] == 0.37 for place in changed)
    assert any(value == 0.23 and place.endswith(hidden) for place, value in after.items())


def test_dropout_acts_and_is_saved_in_the_config() -> None:
    model = build("modernbert")  # built with Identity where its config says 0
    ids = torch.arange(5)[None]
    set_dropout(model, attention=0.5)
    assert model.config.attention_dropout == 0.5
    model.train()
    torch.manual_seed(0)
    first, second = model(input_ids=ids).logits, model(input_ids=ids).logits
    assert not torch.equal(first, second)
    set_dropout(model, attention=0.0, hidden=0.0)
    assert torch.equal(model(input_ids=ids).logits, model(input_ids=ids).logits)


def test_a_removed_model_can_be_set_too() -> None:
    model = build("bert")
    small = remove(model, masks(layout(model))["uneven"])
    set_dropout(small, attention=0.4)
    assert sum(value == 0.4 for value in rates(small).values()) == 4


def test_t5_has_one_number_for_both() -> None:
    model = build("t5")
    set_dropout(model, hidden=0.2, attention=0.4)
    now = rates(model)
    inside = {place for place in now if place.endswith("Attention:dropout")}
    assert len(inside) == 12
    assert all(now[place] == (0.4 if place in inside else 0.2) for place in now)
    assert model.config.dropout_rate == 0.2


def test_a_family_without_such_a_dropout_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="'llama' has no hidden dropout"):
        set_dropout(build("llama"), hidden=0.1)
