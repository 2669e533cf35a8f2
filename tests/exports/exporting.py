"""What the tests of exports share: small pruned models, and inputs that no export has seen."""

from __future__ import annotations

from headcount.models.find import layout
from headcount.models.probe import probe_inputs
from headcount.models.remove import remove
from models.zoo import build, masks, mixed, shallow


def pruned(family, **changes):
    model = build(family, **changes)
    return remove(model, mixed(layout(model)))


def unseen(model):
    """Inputs that the export has not seen when it verified itself."""
    inputs = probe_inputs(model, batch=2, length=9, seed=7)
    if not hasattr(model.config, "pad_token_id"):
        inputs.pop("attention_mask", None)
    return inputs


def one_layer(family):
    model = build(family, **shallow(family, 1))
    return remove(model, masks(layout(model))["uneven"])


def two_layers(family):
    """Layer 0 emptied, layer 1 uneven."""
    return pruned(family, **shallow(family, 2))


def feeds_of(model):
    """Inputs of a shape that no export has seen."""
    inputs = probe_inputs(model, batch=5, length=13, seed=3)
    if getattr(model.config, "type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = inputs["input_ids"] % 2
    return inputs


def numpy(feeds):
    return {name: tensor.numpy() for name, tensor in feeds.items()}
