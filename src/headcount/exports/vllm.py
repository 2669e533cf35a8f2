"""Export for vLLM: the standalone checkpoint with what its transformers backend reads per layer.

vLLM makes a cache for every layer: one without heads ends its process. So such a layer keeps one
head with a key-value head of its own, of zeros.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path

import torch
from transformers import PreTrainedModel

from headcount.base.errors import UnsupportedError
from headcount.exports.checkpoint import (
    PER_LAYER,
    Standalone,
    plain_class,
    require_no_paths,
    serves_per_layer,
)
from headcount.exports.formats import ReadBack
from headcount.exports.inputs import Probes
from headcount.models import cut
from headcount.models.find import sites_of
from headcount.models.instructions import MAYBE_WIDTH, attributes, with_parts
from headcount.models.pruned import pruned_class


class Vllm(Standalone):
    """The standalone checkpoint, with heads of zeros where a layer has none."""

    library = "vllm"
    imports = "from vllm import LLM, SamplingParams"
    loads = 'model = LLM("path/to/this/folder", model_impl="transformers", trust_remote_code=True)'
    calls = 'answers = model.generate(["a text"], SamplingParams(temperature=0))'

    def write(self, model: PreTrainedModel, folder: Path, probes: Probes) -> ReadBack:
        """The checkpoint of a model whose every layer has a head, and what vLLM must be told."""
        if not serves_per_layer(model):
            raise UnsupportedError(
                f"headcount cannot export {plain_class(model).__name__} "
                f"('{model.config.model_type}') to vllm: it writes language models of one decoder "
                f"whose config has {' and '.join(PER_LAYER)}. Export to standalone or onnx."
            )
        require_no_paths(model, "vLLM")
        answered = super().write(model, folder, probes)
        empty = sum(not site.heads for site in sites_of(model))
        ways = math.gcd(*(max(site.groups, 1) for site in sites_of(model)))
        most = f"over {ways} processes at most" if ways > 1 else "not possible"
        details = f"tensor parallelism is {most}, by the key-value heads of its layers"
        if empty:
            details += f"; layers without heads have one of zeros: {empty}"
        return replace(answered, details=details)

    def stored(self, model: PreTrainedModel) -> PreTrainedModel:
        """The model with a head of zeros where a layer has none."""
        return with_heads(model)


def with_heads(model: PreTrainedModel) -> PreTrainedModel:
    """A pruned model whose layers without heads have one head of zeros; itself where all have."""
    written = [
        site | {"kept": site["kept"] or [0], "empty": ""} for site in cut.sites_in(model.config)
    ]
    if written == cut.sites_in(model.config):
        return model
    config = copy.deepcopy(model.config)
    with torch.device("meta"):
        full = plain_class(model)(copy.deepcopy(config))
        sites = {site.path: site for site in sites_of(full)}
        for site, before in zip(written, cut.sites_in(model.config), strict=True):
            if not before["kept"]:
                module = cut.find_module(full, site["path"])
                widths = not before["attributes"].keys().isdisjoint(MAYBE_WIDTH)
                site["attributes"] = attributes(module, sites[site["path"]], [0], widths)
        plan = dict(config.headcount) | {"sites": written}
        config.headcount = with_parts(plan, cut.biases_in(config), cut.paths_in(config))
        filled = pruned_class(plain_class(model))(config)
    state = model.state_dict()
    zeros = {
        name: torch.zeros(tensor.shape, dtype=model.dtype, device=model.device)
        for name, tensor in filled.state_dict().items()
        if name not in state
    }
    filled.load_state_dict(state | zeros, assign=True)
    filled.tie_weights()
    if model.can_generate():
        filled.generation_config = copy.deepcopy(model.generation_config)
    return filled
