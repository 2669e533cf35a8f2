from __future__ import annotations

import pytest
import torch
from torch import nn

from headcount.models.media import layouts


class Config:
    """What a config may say."""

    def __init__(self, **settings):
        vars(self).update(settings)


def first(forward, config, module=None, batch=2, length=7):
    """The shapes of the first layout for a model with this signature."""
    model = nn.Sequential(module or nn.Identity())
    model.forward = forward
    made = next(layouts(model, Config(**config), torch.zeros, batch, length), {})
    return {name: tuple(value.shape) for name, value in made.items()}


@pytest.mark.parametrize(
    ("forward", "config", "module", "expected"),
    [
        (
            lambda hidden_states, grid_thw: None,
            {"patch_size": 8},
            nn.Conv3d(3, 5, (2, 4, 4)),
            {"hidden_states": (16, 96), "grid_thw": (1, 3)},
        ),
        (
            lambda pixel_values, pixel_attention_mask, spatial_shapes: None,
            {"num_channels": 3, "patch_size": 2, "num_patches": 9},
            None,
            {
                "pixel_values": (2, 9, 12),
                "pixel_attention_mask": (2, 9),
                "spatial_shapes": (2, 2),
            },
        ),
        (
            lambda input_ids, bbox: None,
            {},
            None,
            {"bbox": (2, 7, 4)},
        ),
        (
            lambda input_features, attention_mask: None,
            {"num_mel_bins": 16},
            None,
            {"input_features": (2, 64, 16)},
        ),
        (
            lambda pixel_values_videos: None,
            {"num_frames": 3, "image_size": 8},
            None,
            {"pixel_values_videos": (2, 3, 3, 8, 8)},
        ),
        (
            lambda query_embeds, encoder_hidden_states: None,
            {"hidden_size": 8, "encoder_hidden_size": 12},
            None,
            {"query_embeds": (2, 3, 8), "encoder_hidden_states": (2, 5, 12)},
        ),
        (lambda input_ids: None, {}, None, {}),
    ],
)
def test_the_first_layout_is_the_likeliest(forward, config, module, expected):
    assert first(forward, config, module) == expected


def test_audio_comes_in_both_orders_with_and_without_masks():
    model = nn.Sequential(nn.Identity())
    model.forward = lambda input_features, attention_mask: None
    made = list(layouts(model, Config(num_mel_bins=16), torch.zeros, 2, 7))
    shapes = {(tuple(one["input_features"].shape), "attention_mask" in one) for one in made}
    assert {((2, 64, 16), True), ((2, 16, 64), False), ((2, 16, 64), True)} <= shapes
