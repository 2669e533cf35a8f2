"""Export as a transformers checkpoint: `zeroed` (full size) and `standalone` (small, own code).

Both carry out the instructions in `config.headcount`: `zeroed` backwards, putting every kept row
back in its place in a tensor of zeros; `standalone` by shipping the text of `cut.py`.
"""

from __future__ import annotations

import copy
import importlib.util
import json
import sys
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers import AutoModel, PreTrainedConfig, PreTrainedModel
from transformers.models.auto import modeling_auto
from transformers.pytorch_utils import Conv1D
from transformers.utils import logging

from headcount import __version__
from headcount.base.errors import UnsupportedError, UsageError
from headcount.exports.formats import ExportFormat, ReadBack
from headcount.exports.inputs import Probes
from headcount.models import cut
from headcount.models.find import sites_of
from headcount.models.probe import TOLERANCE, relative_difference, run
from headcount.models.weights import adopt_pooler

MODELLING = "modeling_headcount"
PER_LAYER = ("num_attention_heads", "num_key_value_heads")
"""What a config of transformers may have another number of in each layer."""
FOOTER = """

# The classes of this model, written by headcount {version} (Apache-2.0) and verified with
# transformers {transformers_version}.

import transformers  # noqa: E402


def _pruned(base: Any) -> Any:
    made = mixed_class(Pruned, base)
    # transformers copies the file of a model's module when the model is saved again
    made.__module__ = __name__
    return made


{classes}
"""


def require_no_paths(model: PreTrainedModel, to: str, where: Collection[str] | None = None) -> None:
    """Refuse linear paths in these layers, or in any: what is written has no place for them."""
    for entry in cut.paths_in(model.config):
        if where is not None and entry["path"] not in where:
            continue
        raise UnsupportedError(
            f"{entry['path']} got a linear path by recovery, which {to} cannot hold: export to "
            "standalone or onnx, or recover without --path-rank and --linear."
        )


def plain_class(model: PreTrainedModel) -> type[PreTrainedModel]:
    """The transformers class of a model, without what headcount put in front of it."""
    return getattr(type(model), "base_class", type(model))


class Zeroed(ExportFormat):
    """A full-size checkpoint in which the removed heads are zero, for plain transformers."""

    loads = 'model = {auto}.from_pretrained("path/to/this/folder")'
    zeros = True

    def write(self, model: PreTrainedModel, folder: Path, probes: Probes) -> ReadBack:
        """All weights, each in its place."""
        require_no_paths(model, "a plain checkpoint")
        with quiet():
            _at_full_size(model).save_pretrained(folder)
            return verified_again(model, plain_class(model), folder, probes)


def _at_full_size(model: PreTrainedModel) -> PreTrainedModel:
    """The model for saving: all weights, but not what is computed when it is built."""
    config = copy.deepcopy(model.config)
    for written in ("headcount", "pruned_heads", "auto_map"):
        vars(config).pop(written, None)
    biases = cut.biases_in(model.config)
    if biases and hasattr(config, "attention_bias"):
        config.attention_bias = True  # Llama's word for biases of all four projections
    with torch.device("meta"):
        full = adopt_pooler(plain_class(model)(config), model)
    state, shapes = _in_place(model, full), full.state_dict()
    if lost := [path for path in biases if f"{path}.bias" not in shapes]:
        raise UnsupportedError(
            f"{lost[0]} got a bias by recovery, and {plain_class(model).__name__} has none there: "
            "export to standalone, or recover without --bias."
        )
    if biases:
        state |= {
            name: torch.zeros(shape.shape, dtype=model.dtype, device=model.device)
            for name, shape in shapes.items()
            if name not in state and name.endswith("_proj.bias")
        }
    full.load_state_dict(state, assign=True)
    full.tie_weights()
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for name, source in (full.all_tied_weights_keys or {}).items():
        # a T5 may have been loaded with embeddings and output apart that its config calls tied
        if name in parameters and parameters[name] is not parameters.get(source, parameters[name]):
            path, _, leaf = name.rpartition(".")
            setattr(full.get_submodule(path), leaf, torch.nn.Parameter(state[name]))
    if model.can_generate():
        full.generation_config = copy.deepcopy(model.generation_config)
    return full


def _in_place(model: PreTrainedModel, full: PreTrainedModel) -> dict[str, Tensor]:
    """The weights of a pruned model, each at its place in a full-size tensor of zeros."""
    places = dict(_places(model, cut.sites_in(model.config)))
    shapes = {name: tensor.shape for name, tensor in full.state_dict().items()}
    full_size: dict[int, Tensor] = {}
    state = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        # one tensor under two names stays one: tied weights stay tied
        if id(tensor) not in full_size:
            whole = tensor.detach()
            for axis, index in places.get(id(tensor), ()):
                shape = list(whole.shape)
                shape[axis] = shapes[name][axis]
                rows = torch.tensor(index, dtype=torch.long, device=whole.device)
                whole = whole.new_zeros(shape).index_copy(axis, rows, whole)
            full_size[id(tensor)] = whole
        state[name] = full_size[id(tensor)]
    # a layer without heads has no weights at all
    gone = {name: shape for name, shape in shapes.items() if name not in state}
    zeros = {n: torch.zeros(s, dtype=model.dtype, device=model.device) for n, s in gone.items()}
    return state | zeros


def _places(
    model: PreTrainedModel, sites: list[dict[str, Any]]
) -> Iterator[tuple[int, list[tuple[int, list[int]]]]]:
    """(id of a parameter, [(axis, places in the full model)]) for every parameter cut.py cut."""
    for site in sites:
        module, out = cut.find_module(model, site["path"]), cut.find_module(model, site["out"])
        if module is None or out is None:
            continue
        counts = (site["kept"], site["heads"], site["groups"], site["head_dim"])
        for child, kind in site["projections"]:
            layer, rows = getattr(module, child), cut.rows_of(kind, *counts)
            yield id(layer.weight), [(_output_axis(layer), rows)]
            if getattr(layer, "bias", None) is not None:
                yield id(layer.bias), [(0, rows)]
        yield id(out.weight), [(1 - _output_axis(out), cut.rows_of("q", *counts))]
        for name, axis in site["parameters"].items():
            yield id(attrgetter(name)(module)), [(axis, site["kept"])]


def _output_axis(layer: object) -> int:
    return 1 if isinstance(layer, Conv1D) else 0


class Standalone(ExportFormat):
    """The small checkpoint with a modelling file of its own and an `auto_map` that points to it."""

    loads = 'model = {auto}.from_pretrained("path/to/this/folder", trust_remote_code=True)'

    def write(self, model: PreTrainedModel, folder: Path, probes: Probes) -> ReadBack:
        """Config, weights and the text of `cut.py` with the model's classes below it."""
        base = plain_class(model)
        if not getattr(model.config, "headcount", None):
            raise UsageError(
                f"This {base.__name__} has all its heads, so it needs no code of its own: plain "
                "transformers loads it as it is."
            )
        if getattr(transformers, base.__name__, None) is not base:
            raise UnsupportedError(
                f"{base.__name__} is not one of transformers' own classes, so a standalone file "
                "cannot import it."
            )
        autos = dict.fromkeys(auto_names(model.config, base) or ["AutoModel"], base)
        autos.setdefault("AutoModel", next(iter(_classes(AutoModel, model.config)), base))
        stored = self.stored(model)
        named = {name: f"{MODELLING}.{kind.__name__}" for name, kind in autos.items()}
        with quiet():
            cut.Pruned.save_pretrained(stored, folder)  # pyright: ignore[reportArgumentType]
            file = folder / "config.json"
            config = json.loads(file.read_text(encoding="utf-8"))
            config |= {"auto_map": named, **per_layer_numbers(stored)}
            file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
            modelling = folder / f"{MODELLING}.py"
            modelling.write_text(_source(set(autos.values())), encoding="utf-8")
            with _imported(modelling) as module:
                return verified_again(model, getattr(module, base.__name__), folder, probes)

    def stored(self, model: PreTrainedModel) -> PreTrainedModel:
        """What is saved in place of the model, and must answer as it does."""
        return model


def serves_per_layer(model: PreTrainedModel) -> bool:
    """Whether it is a language model whose config may have other numbers of heads in each layer."""
    stacks = {site.stack for site in sites_of(model)}
    return (
        stacks == {"decoder"}
        and model.can_generate()
        and all(isinstance(getattr(model.config, name, None), int) for name in PER_LAYER)
    )


def per_layer_numbers(model: PreTrainedModel) -> dict[str, object]:
    """What a config says for those who must know the heads of every layer, such as vLLM."""
    if not serves_per_layer(model):
        return {}
    sites, whole = sites_of(model), [getattr(model.config, name) for name in PER_LAYER]
    numbers = {
        str(model.get_submodule(site.path).layer_idx): dict(
            zip(PER_LAYER, (site.heads, site.groups), strict=True)
        )
        for site in sites
        if [site.heads, site.groups] != whole
    }
    return {
        "head_dim": sites[0].head_dim,
        "per_layer_config": numbers,
        "allow_global_per_layer_attribute_access": True,
    }


def auto_names(config: PreTrainedConfig, kind: type[PreTrainedModel]) -> list[str]:
    """The `AutoModel…` classes that bring exactly this class for this config."""
    return [
        name
        for name, auto in vars(modeling_auto).items()
        if name.startswith("AutoModel") and kind in _classes(auto, config)
    ]


def _classes(auto: object, config: PreTrainedConfig) -> tuple[type[PreTrainedModel], ...]:
    mapping = getattr(auto, "_model_mapping", None)
    if mapping is None or type(config) not in mapping:
        return ()
    kinds = mapping[type(config)]
    return tuple(kinds) if isinstance(kinds, (tuple, list)) else (kinds,)


def _source(kinds: set[type[PreTrainedModel]]) -> str:
    names = sorted(kind.__name__ for kind in kinds)
    footer = FOOTER.format(
        version=__version__,
        transformers_version=transformers.__version__,
        classes="\n".join(f"{name} = _pruned(transformers.{name})" for name in names),
    )
    return Path(cut.__file__).read_text(encoding="utf-8").rstrip() + "\n" + footer


@contextmanager
def _imported(file: Path) -> Generator[object]:
    """The module in `file`, without transformers' cache of remote code."""
    name = f"_{MODELLING}_{id(file)}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UnsupportedError(f"Python cannot import {file.name}.")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.dont_write_bytecode = before
        del sys.modules[name]


def verified_again(model: PreTrainedModel, kind: Any, folder: Path, probes: Probes) -> ReadBack:
    """How far what is in the folder answers from the model; refuses when that is too far."""
    attention = model.config._attn_implementation
    again: Any = adopt_pooler(kind.from_pretrained(folder, attn_implementation=attention), model)
    if again.dtype != model.dtype:
        raise UnsupportedError(f"The export has become {again.dtype}; the model is {model.dtype}.")
    again.to(model.device)
    difference = max(relative_difference(run(model, f), run(again, f)) for f in probes.feeds)
    if not difference <= TOLERANCE.get(model.dtype, 1e-5):
        raise UnsupportedError(
            f"headcount cannot export {type(model).__name__} ('{model.config.model_type}') "
            f"this way: its answers differ from the model's by {difference:.2g} of their size."
        )
    return ReadBack(difference)


@contextmanager
def quiet() -> Generator[None]:
    """No progress bars of transformers inside."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
