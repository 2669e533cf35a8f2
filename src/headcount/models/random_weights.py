"""Models with random weights, from a config alone: for whatever does not depend on the weights."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import PreTrainedModel

from headcount.models.load import read_config
from headcount.models.pruned import pruned_class


def has_weights(name: str) -> bool:
    """Whether there are weights to load; a name that is not here may have some on the hub."""
    path = Path(name)
    if path.is_file():
        return False
    return not path.is_dir() or any(
        file.suffix in (".safetensors", ".bin") for file in path.iterdir()
    )


def random_model(name: str, *, seed: int = 0) -> PreTrainedModel:
    """The model of a folder, a config.json or a hub name, in evaluation mode, its heads removed
    as the config says."""
    config, kind = read_config(name)
    if getattr(config, "headcount", None):
        kind = pruned_class(kind)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return kind._from_config(config).eval()
