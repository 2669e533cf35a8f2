"""LoRA (Hu et al., ICLR 2022) through peft: W + 2 B A beside every weight W, and in it at the end.

A (rank × input) is random and B (output × rank) zero at first; they alone are trained.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Generator
from contextlib import contextmanager

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from headcount.base.errors import UsageError
from headcount.base.extras import require_extra
from headcount.models.find import sites_of


def attention_layers(model: nn.Module) -> set[str]:
    """The projections of every layer that has heads, by path."""
    return {
        path
        for site in sites_of(model)
        if site.heads
        for path in (*(f"{site.path}.{child}" for child, _ in site.projections), site.out)
    }


def adaptable_layers(model: PreTrainedModel) -> list[str]:
    """Linear layers by path: without the one that makes words, empty ones, and those whose weights
    are shared, to which each would add its own."""
    uses = Counter(id(p) for _, p in model.named_parameters(remove_duplicate=False))
    words = model.get_output_embeddings()
    return [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear | Conv1D)
        and module is not words
        and module.weight.numel()
        and uses[id(module.weight)] == 1
    ]


@contextmanager
def adapted(
    model: PreTrainedModel, layers: Collection[str], *, rank: int, seed: int
) -> Generator[None]:
    """Inside, adapters of the layers are all that is trained. Afterwards their product is in the
    weights; after an error the model is as it was."""
    require_extra("lora")
    from peft import LoraConfig
    from peft.tuners.lora import LoraModel

    if not layers:
        raise UsageError(f"{type(model).__name__} has no linear layer left that LoRA could adapt.")
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    config = LoraConfig(
        r=rank,
        lora_alpha=2 * rank,
        target_modules="|".join(map(re.escape, layers)),
        fan_in_fan_out=any(isinstance(model.get_submodule(name), Conv1D) for name in layers),
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        tuner = LoraModel(model, config, "default")
    try:
        for parameter in trained:
            parameter.requires_grad_(False)
        yield
        tuner.merge_and_unload()
    except BaseException:
        tuner.unload()
        raise
    finally:
        for parameter in trained:
            parameter.requires_grad_(True)
