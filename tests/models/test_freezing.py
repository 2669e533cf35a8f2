from __future__ import annotations

import pytest

from headcount.base.errors import UnsupportedError, UsageError
from headcount.models.freezing import frozen, lower_parameters
from models.zoo import build


def names(model, lowest: int | None) -> set[str]:
    chosen = {id(parameter) for parameter in lower_parameters(model, lowest)}
    return {name for name, parameter in model.named_parameters() if id(parameter) in chosen}


def test_embeddings_and_the_lowest_layers_of_bert() -> None:
    model = build("bert")
    assert names(model, None) == set()
    embeddings = {n for n, _ in model.named_parameters() if n.startswith("bert.embeddings.")}
    assert names(model, 0) == embeddings
    lower = {n for n, _ in model.named_parameters() if ".layer.0." in n or ".layer.1." in n}
    assert names(model, 2) == embeddings | lower


@pytest.mark.parametrize(
    ("family", "below"),
    [
        ("gpt2", {"transformer.wte.weight", "transformer.wpe.weight"}),
        ("llama", {"model.embed_tokens.weight"}),
        ("t5", {"shared.weight"}),
        ("vit", {"vit.embeddings.cls_token", "vit.embeddings.position_embeddings"}),
        ("albert", {"albert.encoder.embedding_hidden_mapping_in.weight"}),
        ("electra", {"electra.embeddings_project.weight"}),
        ("bart", {"model.shared.weight", "model.decoder.embed_positions.weight"}),
    ],
)
def test_what_runs_before_the_first_layer_is_embedding(family: str, below: set[str]) -> None:
    found = names(build(family), 0)
    assert below <= found
    assert not any(".layers.0." in name or ".block.0." in name for name in found)


def test_both_stacks_of_an_encoder_decoder() -> None:
    found = names(build("bart"), 1)
    assert {name.split(".layers.")[0] for name in found if ".layers." in name} == {
        "model.encoder",
        "model.decoder",
    }
    assert not any(".layers.1." in name for name in found)


def test_impossible_requests() -> None:
    with pytest.raises(UsageError, match="Cannot freeze 9 layers: the model has 4"):
        lower_parameters(build("bert"), 9)
    with pytest.raises(UnsupportedError, match="same weights in several layers"):
        lower_parameters(build("albert"), 1)


def test_frozen_only_inside_and_what_was_frozen_before_stays_so() -> None:
    model = build("bert")
    model.classifier.bias.requires_grad_(False)
    model.bert.embeddings.LayerNorm.bias.requires_grad_(False)
    with frozen(model, 1):
        assert not model.bert.encoder.layer[0].output.dense.weight.requires_grad
        assert model.bert.encoder.layer[1].output.dense.weight.requires_grad
    assert model.bert.encoder.layer[0].output.dense.weight.requires_grad
    assert not model.classifier.bias.requires_grad
    assert not model.bert.embeddings.LayerNorm.bias.requires_grad
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
