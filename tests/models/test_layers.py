from __future__ import annotations

import pytest

from headcount.models.layers import call_order, find_layers
from models.zoo import build


@pytest.mark.parametrize(("family", "stacks"), [("bert", 1), ("gpt2", 1), ("t5", 2), ("clip", 2)])
def test_every_layer_is_found_in_the_order_of_the_modules(family, stacks):
    model = build(family)
    layers = find_layers(model)
    assert len(layers) == 4 * stacks
    assert len({layer.stack for layer in layers}) == stacks
    places = {path: place for place, (path, _) in enumerate(model.named_modules())}
    assert [layer.path for layer in layers] == sorted(
        (layer.path for layer in layers), key=places.__getitem__
    )


def test_a_decoder_layer_has_its_cross_attention_too():
    decoder = [layer for layer in find_layers(build("t5")) if "decoder" in layer.path]
    assert [{site.stack for site in layer.sites} for layer in decoder] == [{"decoder", "cross"}] * 4


def test_shared_layers_are_called_again():
    model = build("albert")
    layers = find_layers(model)
    calls = call_order(model, layers)
    assert len(layers) == 2
    assert calls == [layer.path for layer in layers for _ in range(2)]
