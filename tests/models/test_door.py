from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import BertModel

from headcount.base.errors import UsageError
from headcount.heads import Mask
from headcount.models.capture import capture
from headcount.models.find import layout
from headcount.models.gates import gate
from headcount.models.remove import remove
from models.zoo import build


def gated(model, mask):
    with gate(model, mask):
        pass


def captured(model, mask):
    with capture(model, print):
        pass


DOORS = {
    "hc.remove": remove,
    "hc.gate": gated,
    "hc.layout": lambda model, mask: layout(model),
    "hc.capture": captured,
}


@pytest.mark.parametrize("name", DOORS)
def test_a_name_in_place_of_a_model(name):
    mask = Mask.full(layout(build("bert")))
    for given in ("bert-base-uncased", Path("bert-base-uncased")):
        with pytest.raises(UsageError, match=rf"^{name} takes a model, .*hc.load\('bert-base-unc"):
            DOORS[name](given, mask)


@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize("given", [None, 3, {"model": 1}, BertModel])
def test_no_model_at_all(name, given):
    mask = Mask.full(layout(build("bert")))
    with pytest.raises(UsageError, match=rf"^{name} takes a"):
        DOORS[name](given, mask)


@pytest.mark.parametrize("name", DOORS)
def test_a_peft_model(name):
    """peft is not installed here; its classes are known by the package they come from."""
    peft_model = type("PeftModel", (nn.Module,), {"__module__": "peft.peft_model"})
    adapted = type("Linear", (nn.Linear,), {"__module__": "peft.tuners.lora.layer"})
    model = build("bert")
    mask = Mask.full(layout(model))
    wrapped = peft_model()
    wrapped.base_model = model
    with pytest.raises(UsageError, match=r"not peft's PeftModel: pass model.merge_and_unload()"):
        DOORS[name](wrapped, mask)
    model.bert.encoder.layer[0].attention.self.query = adapted(32, 32)
    with pytest.raises(UsageError, match=r"peft's .*: pass model.merge_and_unload()"):
        DOORS[name](model, mask)


def test_a_model_on_the_meta_device_has_nothing_to_remove():
    with torch.device("meta"):
        model = build("bert")
    with pytest.raises(UsageError, match="weight is on the meta device, without numbers"):
        remove(model, Mask.full(layout(model)))
