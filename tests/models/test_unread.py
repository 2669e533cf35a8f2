from __future__ import annotations

import pytest
from torch import nn

from headcount.base.errors import UnsupportedError
from headcount.models.find import layout, layout_of, sites_of
from headcount.models.sites import find_sites
from headcount.models.unread import describe, find_unread
from models.zoo import FAMILIES, build, skeleton


@pytest.mark.parametrize(
    ("kind", "names"),
    {
        "qwen3_5": [
            "3 x Qwen3_5GatedDeltaNet (language_model.layers.*.linear_attn)",
        ],
        "qwen3_5_moe": [
            "3 x Qwen3_5MoeGatedDeltaNet (language_model.layers.*.linear_attn)",
        ],
        "minicpmv4_6": [
            "3 x Qwen3_5GatedDeltaNet (language_model.layers.*.linear_attn)",
        ],
        "bigbird_pegasus": [
            "4 x BigBirdPegasusBlockSparseAttention (encoder.layers.*.self_attn.self)"
        ],
        "kosmos-2.5": ["4 x Kosmos2_5VisionAttention (vision_model.encoder.layer.*.attention)"],
        "granite_speech": ["4 x GraniteSpeechConformerAttention (encoder.layers.*.attn)"],
        "siglip": ["1 x MultiheadAttention (vision_model.head.attention)"],
        "mask2former": [
            "4 x Mask2FormerPixelDecoderEncoderMultiscaleDeformableAttention "
            "(pixel_level_module.decoder.encoder.layers.*.self_attn)",
            "3 x MultiheadAttention (transformer_module.decoder.layers.*.cross_attn)",
        ],
    }.items(),
)
def test_attention_that_is_not_understood_is_named(kind, names):
    model = skeleton(kind)
    sites = find_sites(model)
    assert sites, "the heads of another part are found"
    found = layout_of(sites, None, find_unread(model, sites))
    assert list(found.unread) == names
    assert f"not understood: {', '.join(names)})" in str(found)


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_named_in_a_family_that_is_understood(family):
    model = build(family)
    assert find_unread(model, find_sites(model)) == []


def test_layout_names_it_and_compares_without_it():
    from transformers import SiglipConfig, SiglipModel

    tower = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}
    tower |= {"intermediate_size": 40, "image_size": 16, "patch_size": 8, "vocab_size": 61}
    model = SiglipModel(SiglipConfig(text_config=tower, vision_config=tower))
    found = layout(model)
    assert found.unread == ("1 x MultiheadAttention (vision_model.head.attention)",)
    assert found == layout_of(find_sites(model))
    assert "unread" not in found.to_json()


def test_a_model_without_known_heads_says_what_it_sees():
    with pytest.raises(UnsupportedError, match=r"does not understand \d+ x XLNetRelativeAttention"):
        sites_of(skeleton("xlnet"))


class Odd(nn.Module):
    """Attention by its projections alone; what is only called after it is none."""

    def __init__(self):
        super().__init__()
        self.mix = nn.ModuleDict({"query": nn.Linear(2, 2), "key": nn.Linear(2, 2)})
        self.attn_norm = nn.LayerNorm(2)
        self.attention_bias = nn.Embedding(3, 2)
        self.attention_weights = nn.Linear(2, 2)
        self.attention = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))


def test_structure_tells_as_well_as_names():
    model = nn.ModuleDict({"layers": nn.ModuleList([Odd(), Odd()])})
    assert describe(find_unread(model, [])) == ("2 x ModuleDict (layers.*.mix)",)
    assert find_unread(nn.Sequential(nn.Linear(2, 2), nn.Dropout()), []) == []
