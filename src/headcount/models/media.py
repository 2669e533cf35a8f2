"""Inputs of towers: patches with their grids, audio in its layouts, video, boxes, series.

Configs name sizes in many ways, so a size is read from the first weights that meet the input where
that is possible, and of several layouts the first that runs is taken.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

SIDE = 4
"""Patches along each side of a picture that is given as patches."""
STEPS = 64
"""Frames of audio, where the config does not say how many."""


@dataclass(frozen=True)
class Request:
    """A model, and what its input is to be."""

    model: nn.Module
    config: Any
    names: frozenset[str]
    batch: int
    length: int
    floats: Callable[..., Tensor]

    def whole(self, *names: str) -> list[int]:
        """The numbers that the config has under these names, in this order."""
        return _whole(self.config, *names)

    def first(self) -> list[int]:
        """How many numbers the first weights take at a time, in all and per channel."""
        for module in self.model.modules():
            if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d | nn.Linear):
                return [module.weight[0].numel(), module.weight.shape[1]]
        return []


Layout = Iterator[dict[str, Tensor | None]]


def patches(request: Request) -> Layout:
    """Patches in a row and the grid they come from, as in Qwen-VL: (patch, numbers)."""
    if not request.names & {"grid_thw", "image_grid_thw"}:
        return
    name = "pixel_values" if "pixel_values" in request.names else "hidden_states"
    grid = "grid_thw" if "grid_thw" in request.names else "image_grid_thw"
    grids = {grid: torch.tensor([[1, SIDE, SIDE]])}
    if "merge_sizes" in request.names:
        grids["merge_sizes"] = torch.tensor([1])
    channels = [*request.whole("in_channels", "num_channels", "in_chans"), 3][0]
    size = [*request.whole("patch_size", "spatial_patch_size"), 14][0]
    numbers = [*request.first()[:1], channels * size * size, channels * size * size * 2]
    for count in dict.fromkeys(numbers):
        yield {name: request.floats(SIDE * SIDE, count), **grids}
    yield {name: request.floats(SIDE * SIDE, channels, size, size), **grids}


def shaped(request: Request) -> Layout:
    """Patches of pictures of any shape, as in SigLIP 2: (picture, patch, numbers)."""
    if "spatial_shapes" not in request.names:
        return
    vision = getattr(request.config, "vision_config", request.config)
    numbers = vision.num_channels * vision.patch_size**2
    count = min(SIDE * SIDE, getattr(vision, "num_patches", SIDE * SIDE))
    side = int(count**0.5)
    yield {
        "pixel_values": request.floats(request.batch, side * side, numbers),
        "pixel_attention_mask": torch.ones(request.batch, side * side, dtype=torch.long),
        "spatial_shapes": torch.full((request.batch, 2), side),
    }


def tiles(request: Request) -> Layout:
    """Pictures in tiles, as in Mllama: (picture, image, tile, channel, height, width)."""
    if "aspect_ratio_ids" not in request.names:
        return
    vision = getattr(request.config, "vision_config", request.config)
    count, size = vision.max_num_tiles, vision.image_size
    shape = (request.batch, 1, count, vision.num_channels, size, size)
    yield {
        "pixel_values": request.floats(*shape),
        "aspect_ratio_ids": torch.ones(request.batch, 1, dtype=torch.long),
        "aspect_ratio_mask": torch.ones(request.batch, 1, count, dtype=torch.long),
    }


def pictures(request: Request) -> Layout:
    """Pictures of the sizes that configs give under other names, or that weights tell."""
    if "pixel_values" not in request.names:
        return
    vision = getattr(request.config, "vision_config", request.config)
    channels = [*_whole(vision, "num_channels", "in_channels", "in_chans"), 3][0]
    sizes = _whole(vision, "input_size", "image_size", "img_size", "spec_size")
    patch = [*_whole(vision, "patch_size"), 16][0]
    for size in dict.fromkeys([*sizes, SIDE * patch, 64, 2 * SIDE * patch, 224]):
        picture = request.floats(request.batch, channels, size, size)
        yield {"pixel_values": picture}
        if "pixel_mask" in request.names:
            mask = torch.ones(request.batch, size, size, dtype=torch.long)
            yield {"pixel_values": picture, "pixel_mask": mask}
        if "pixel_attention_mask" in request.names:
            mask = torch.ones(request.batch, 1, size, size, dtype=torch.bool)
            yield {"pixel_values": picture[:, None], "pixel_attention_mask": mask}
        if "target_sizes" in request.names and size % patch == 0:
            row = request.floats(1, channels, patch, size * size // patch)
            yield {"pixel_values": row, "target_sizes": torch.full((1, 2), size // patch)}
        if "prompt_pixel_values" in request.names:
            yield dict.fromkeys(("pixel_values", "prompt_pixel_values", "prompt_masks"), picture)
        yield {"pixel_values": picture[:, None].repeat(1, 2, 1, 1, 1)}
        yield {"pixel_values": picture, "bool_masked_pos": None}


def video(request: Request) -> Layout:
    """Frames of pictures: (video, frame, channel, height, width)."""
    names = request.names & {"pixel_values", "pixel_values_videos"}
    if not names:
        return
    name = max(names)
    vision = getattr(request.config, "vision_config", request.config)
    size = [*_whole(vision, "image_size", "crop_size"), 224][0]
    channels = [*_whole(vision, "num_channels", "in_chans"), 3][0]
    frames = _whole(vision, "num_frames", "frames_per_clip")
    for count in dict.fromkeys([*frames, 2, 4]):
        clip = request.floats(request.batch, count, channels, size, size)
        yield {name: clip}
        if "bool_masked_pos" in request.names:
            yield {name: clip, "bool_masked_pos": None}


def audio(request: Request) -> Layout:
    """Features of audio: frames last or first, one long recording or several, with masks."""
    names = request.names & {"input_features", "input_values"}
    if not names:
        return
    name = min(names)
    source = getattr(request.config, "audio_config", request.config)
    source = getattr(source, "encoder_config", source)
    bins = _whole(
        source, "num_mel_bins", "feature_size", "input_feat_per_channel", "input_dim", "n_mels",
        "feature_projection_input_dim", "mel_bins", "input_size", "num_mels",
    )  # fmt: skip
    frames = [2 * size for size in _whole(source, "max_source_positions", "n_window")]
    frames += [*_whole(source, "max_length", "spec_size"), STEPS]
    masks = request.names & {"input_features_mask", "attention_mask", "padding_mask"}
    masks -= {"attention_mask"} if "input_ids" in request.names else set()
    for count in dict.fromkeys([*bins, *request.first()[1:], 80, 128]):
        for steps in dict.fromkeys(frames):
            if count > 4096 or steps > 4096:
                continue
            shapes = {
                (request.batch, steps, count): steps,
                (request.batch, count, steps): steps,
                (1, count, steps): steps,
                (request.batch, 1, steps, count): steps,
            }
            for shape, seen in shapes.items():
                features = request.floats(*shape)
                mask = torch.ones(shape[0], seen, dtype=torch.long)
                for with_masks in (frozenset[str](), masks) if masks else ([],):
                    yield {name: features, **dict.fromkeys(with_masks, mask)}
    for shape in ((request.batch, 1, 4000), (1, 1, 4000), (request.batch, 16000)):
        yield {name: request.floats(*shape)}


def boxes(request: Request) -> Layout:
    """Words with their places on a page: (row, word, 4)."""
    if "bbox" not in request.names:
        return
    corners = torch.tensor([1, 2, 3, 4]).expand(request.batch, request.length, 4)
    yield {"bbox": corners}
    size = [*request.whole("input_size", "image_size"), 224][0]
    picture = request.floats(request.batch, 3, size, size)
    yield {"bbox": corners, "pixel_values": picture}
    yield {"bbox": corners.float() / 10}
    eight = torch.tensor([1, 2, 3, 2, 3, 4, 1, 4]).expand(request.batch, request.length, 8)
    yield {"bbox": eight.float() / 10}
    yield {"bbox": corners.float() / 10, "pixel_values": picture}


def queries(request: Request) -> Layout:
    """Learned queries of a Q-Former, and the states they ask."""
    if "query_embeds" not in request.names:
        return
    width = request.config.hidden_size
    for states_width in dict.fromkeys([*request.whole("encoder_hidden_size"), width]):
        yield {
            "query_embeds": request.floats(request.batch, 3, width),
            "encoder_hidden_states": request.floats(request.batch, 5, states_width),
        }


def states(request: Request) -> Layout:
    """States of another model's width, where a module takes nothing else."""
    width = [*request.whole("hidden_size", "d_model", "dim", "embed_dim"), 0][0]
    taken = request.names & {"hidden_states", "inputs_embeds", "latents", "x"}
    if not width or not taken or "input_ids" in request.names:
        return
    plain = request.floats(request.batch, request.length, width)
    for name in sorted(taken):
        yield {name: plain}
        yield {name: plain.transpose(1, 2)}


def regions(request: Request) -> Layout:
    """Regions of a picture that another model has found, as in LXMERT."""
    if "visual_feats" not in request.names:
        return
    shape = (request.batch, 5)
    yield {
        "visual_feats": request.floats(*shape, request.config.visual_feat_dim),
        "visual_pos": request.floats(*shape, request.config.visual_pos_dim),
    }


def series(request: Request) -> Layout:
    """Numbers over time: what was, what is known of those times, and what comes."""
    if "past_values" not in request.names:
        return
    config = request.config
    before = [*request.whole("context_length"), 32][0]
    if "past_time_features" in request.names:
        past = before + max(config.lags_sequence)
        ahead, facts = config.prediction_length, config.num_time_features
        inputs: dict[str, Tensor | None] = {
            "past_values": request.floats(request.batch, past),
            "past_time_features": request.floats(request.batch, past, facts),
            "past_observed_mask": torch.ones(request.batch, past),
            "future_values": request.floats(request.batch, ahead),
            "future_time_features": request.floats(request.batch, ahead, facts),
        }
        yield inputs
        return
    if "past_values_padding" in request.names:
        rows: dict[str, Tensor | None] = {
            "past_values": request.floats(request.batch, before),
            "past_values_padding": torch.zeros(request.batch, before, dtype=torch.long),
        }
        yield {**rows, "freq": torch.zeros(request.batch, 1, dtype=torch.long)}
        yield rows
    channels = [*request.whole("num_input_channels"), 1][0]
    yield {"past_values": request.floats(request.batch, before, channels)}


def trajectories(request: Request) -> Layout:
    """What an agent saw, did and was paid."""
    if "returns_to_go" not in request.names:
        return
    config, shape = request.config, (request.batch, request.length)
    yield {
        "states": request.floats(*shape, config.state_dim),
        "actions": request.floats(*shape, config.act_dim),
        "rewards": request.floats(*shape, 1),
        "returns_to_go": request.floats(*shape, 1),
        "timesteps": torch.arange(request.length).expand(shape),
        "attention_mask": torch.ones(shape, dtype=torch.long),
    }


def tasks(request: Request) -> Layout:
    """Pictures with a task in tokens beside them, as in OneFormer."""
    if "task_inputs" not in request.names:
        return
    size = [*request.whole("image_size"), 64][0]
    yield {
        "pixel_values": request.floats(request.batch, 3, size, size),
        "task_inputs": torch.ones(request.batch, request.config.task_seq_len),
    }


def languages(request: Request) -> Layout:
    """Rows of a named language, for a model with weights of its own for each."""
    if "lang_ids" in request.names:
        yield {"lang_ids": torch.zeros(request.batch, dtype=torch.long)}


LAYOUTS = (patches, shaped, tiles, boxes, queries, regions, series, trajectories, tasks, languages,
           pictures, video, audio, states)  # fmt: skip


def layouts(
    model: nn.Module, config: Any, floats: Callable[..., Tensor], batch: int, length: int
) -> Layout:
    """What may be put beside a model's tokens, or in their place, likeliest first."""
    names = frozenset(inspect.signature(model.forward).parameters)
    request = Request(model, config, names, batch, length, floats)
    for layout in LAYOUTS:
        yield from layout(request)


def _whole(config: object, *names: str) -> list[int]:
    """The numbers of a config under these names; of a pair the first."""
    values = [getattr(config, name, None) for name in names]
    values = [value[0] if isinstance(value, tuple | list) and value else value for value in values]
    return [value for value in values if isinstance(value, int) and value > 0]
