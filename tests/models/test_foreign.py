"""Checkpoints whose layers differ as other tools write it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import headcount as hc
from headcount.base.errors import HeadcountError
from models.zoo import build


def written(folder: Path, **changes: Any) -> Path:
    """A folder whose config.json says this; None takes a key out."""
    file = folder / "config.json"
    settings = {**json.loads(file.read_text()), **changes}
    kept = {name: value for name, value in settings.items() if value is not None}
    file.write_text(json.dumps(kept))
    return folder


LAYERS: dict[str, Any] = {
    "0": {"num_attention_heads": 2, "num_key_value_heads": 1},
    "1": {"num_attention_heads": 2},
    "3": {"num_attention_heads": 0, "num_key_value_heads": 0},
}


@pytest.mark.parametrize("flag", [True, None])
def test_heads_per_layer_are_built_and_give_the_same_answers(
    tmp_path: Path, flag: bool | None
) -> None:
    model = build("llama")  # 4 layers of 4 heads on 2
    kept = {0: [0, 1], 1: [0, 2], 2: [0, 1, 2, 3], 3: []}
    heads = [hc.Head("decoder", layer, head) for layer, row in kept.items() for head in row]
    small = hc.remove(model, hc.Mask.of(hc.layout(model), heads))
    small.save_pretrained(tmp_path)
    foreign = written(
        tmp_path, headcount=None, per_layer_config=LAYERS, head_dim=8,
        allow_global_per_layer_attribute_access=flag,
    )  # fmt: skip
    again = hc.load(foreign)
    assert hc.layout(again)["decoder"].heads == (2, 2, 4, 0)
    assert hc.layout(again)["decoder"].groups == (1, 2, 2, 0)
    ids = torch.randint(5, 60, (2, 9), generator=torch.Generator().manual_seed(0))
    assert torch.equal(again(ids).logits, small(ids).logits)
    assert hc.inspect(foreign).layout == hc.layout(again)
    again.save_pretrained(tmp_path / "again")
    assert torch.equal(hc.load(tmp_path / "again")(ids).logits, small(ids).logits)


NAS = [{"attention": {"no_op": True}}, {"attention": {"n_heads_in_group": 8}}]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"per_layer_config": [1]}, "per_layer_config is [1], not settings by layer"),
        ({"per_layer_config": {"x": {}}}, "per_layer_config has 'x': {}"),
        ({"per_layer_config": {"1": {"num_attention_heads": "2"}}}, "num_attention_heads '2'"),
        ({"per_layer_config": {"1": {"num_attention_heads": -2}}}, "'num_attention_heads' is -2"),
        ({"per_layer_config": {"9": {"num_attention_heads": 2}}}, "names layer 9 of 4"),
        ({"per_layer_config": {"1": {"num_attention_heads": 3}}}, "layer 1 3 heads on 2 key-value"),
        ({"per_layer_config": {"1": {"num_attention_heads": 8}}}, "no part of the model's 4 on 2"),
        ({"per_layer_config": {"1": {"intermediate_size": 7}}}, "layer 1 intermediate_size 7"),
        ({"block_configs": NAS}, "2 layers (1 with no attention, 1 with 8 heads to a key-value"),
        ({"block_configs": NAS, "model_type": "nemotron-nas"}, "is a Nemotron-NAS model"),
        ({"block_configs": [{}]}, "nothing of the attention of layer 0"),
        ({"block_configs": 3}, "block_configs is 3"),
    ],
)
def test_what_cannot_be_built_is_one_sentence(tmp_path: Path, changes: Any, words: str) -> None:
    build("llama").save_pretrained(tmp_path)
    written(tmp_path, **changes)
    for read in (hc.inspect, hc.load):
        with pytest.raises(HeadcountError) as refused:
            read(tmp_path)
        assert words in str(refused.value)
        assert "\n" not in str(refused.value)


def test_layers_like_the_others_are_no_pruning(tmp_path: Path) -> None:
    build("llama").save_pretrained(tmp_path)
    written(tmp_path, per_layer_config={"1": {"num_attention_heads": 4}})
    assert getattr(hc.load(tmp_path).config, "headcount", None) is None
