"""Probes: what a model, or a tower inside it, is run on to see and to verify its heads.

A model of images and text may need several: one that the whole of it takes, and for attention
that this does not reach the smallest model around it, run on an input of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headcount.base.errors import NotFoundError, UnsupportedError, UsageError
from headcount.models.cached import run_cached
from headcount.models.hooks import evaluating, hooked
from headcount.models.memory import remembered
from headcount.models.probe import find_probe, run, seeded, tensors
from headcount.models.sites import Site

OneProbe: TypeAlias = Mapping[str, Tensor] | Callable[[nn.Module], object]
ProbeLike: TypeAlias = OneProbe | Sequence[OneProbe]
"""Inputs by name, a function that runs the model and returns its answer, or several of these."""

WAYS: dict[str, Callable[..., list[Tensor]]] = {
    "": run,
    " with a key-value cache": run_cached,
    " with a static cache": partial(run_cached, static=True),
}


@dataclass(frozen=True, eq=False)
class ModelProbe:
    """One input: tensors for the model, or for the part of it at `path`; or a function."""

    inputs: Mapping[str, object] = field(default_factory=dict[str, object])
    path: str = ""
    call: Callable[[nn.Module], object] | None = None
    ran: Mapping[str, int] = field(default_factory=dict[str, int])
    """How often attention modules ran on it, by their paths, where it was made up."""

    @property
    def ways(self) -> tuple[str, ...]:
        """The ways of running it: a function knows one, inputs also go through a cache."""
        return ("",) if self.call else tuple(WAYS)

    @property
    def batch(self) -> int:
        """Examples in it; 0 where that is not known."""
        tensors = (v for v in self.inputs.values() if isinstance(v, Tensor) and v.ndim)
        return next((tensor.shape[0] for tensor in tensors), 0)

    def run(
        self, model: nn.Module, way: str = "", dtype: torch.dtype | None = None
    ) -> list[Tensor]:
        """The floating-point answers of a model of this kind."""
        if self.call:
            with torch.no_grad(), evaluating(model), seeded():
                return tensors(self.call(model))
        inputs = {name: _cast(value, dtype) for name, value in self.inputs.items()}
        return WAYS[way](model.get_submodule(self.path), inputs)


def _cast(value: object, dtype: torch.dtype | None) -> object:
    return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value


def as_probes(given: ProbeLike) -> tuple[ModelProbe, ...]:
    """The probes that were given, in any form."""
    if isinstance(given, Mapping):
        return (ModelProbe(inputs=dict(given)),)
    if callable(given):
        return (ModelProbe(call=given),)
    if isinstance(given, Sequence) and not isinstance(given, str) and len(given):
        return tuple(probe for one in given for probe in as_probes(one))
    raise UsageError(
        "A probe is a dict of tensors, a function that runs the model, or a list of these, not "
        f"{str(given)[:60] or given!r}."
    )


def read_probe(file: str | Path) -> dict[str, Tensor]:
    """The inputs in a .safetensors or .npz file."""
    import numpy as np
    from safetensors.torch import load_file

    path = Path(file)
    if not path.is_file():
        raise NotFoundError(f"There is no probe file '{file}'.")
    try:
        if path.suffix == ".npz":
            with path.open("rb") as open_file, np.load(open_file, allow_pickle=False) as arrays:
                return {name: torch.from_numpy(arrays[name]) for name in arrays}
        return load_file(path)
    except Exception as error:
        raise UsageError(
            f"'{file}' is no file of probe inputs: a .safetensors or .npz with a tensor for each "
            "name that the model takes."
        ) from error


def find_probes(
    model: nn.Module, sites: Iterable[Site], *, length: int = 7, seed: int = 0
) -> tuple[ModelProbe, ...]:
    """Inputs made up for a model, and for the towers that its own does not reach."""
    sites = list(sites)
    key = ("probes", length, seed, tuple(site.path for site in sites))
    return remembered(model, key, lambda: tuple(_find(model, sites, length, seed)))


def _find(model: nn.Module, sites: list[Site], length: int, seed: int) -> list[ModelProbe]:
    failure: UnsupportedError | None = None
    missed = {path for site in sites for path, _ in site.places}
    probes: list[ModelProbe] = []
    try:
        probes.append(_probe_of(model, "", missed, length, seed))
    except UnsupportedError as error:
        failure = error
    missed -= set(probes[0].ran) if probes else set()
    tried: set[str] = set()
    for path in sorted(missed):
        above = path
        while path in missed and "." in above:
            above = above.rpartition(".")[0]
            if above in tried or not isinstance(model.get_submodule(above), PreTrainedModel):
                continue
            tried.add(above)
            with suppress(UnsupportedError):
                probe = _probe_of(model, above, missed, length, seed)
                probes += [probe] if probe.ran else []
                missed -= set(probe.ran)
    if failure and not probes:
        raise failure
    return probes


def _probe_of(model: nn.Module, path: str, watched: set[str], length: int, seed: int) -> ModelProbe:
    """An input for the part of the model at `path`, and how often the watched modules run on it."""
    ran: Counter[str] = Counter()
    passes: list[None] = []
    tower = model.get_submodule(path)

    def begin(*_: object) -> None:
        ran.clear()  # the last pass counts: others were tries of an input
        passes.append(None)

    hooks = [lambda: tower.register_forward_pre_hook(begin), *_counters(model, watched, ran)]
    with hooked(hooks):
        inputs = find_probe(tower, length=length, seed=seed)
        if not passes:
            run(tower, inputs)
    return ModelProbe(inputs, path, ran=dict(ran))


def _counters(
    model: nn.Module, paths: Iterable[str], ran: Counter[str]
) -> list[Callable[[], object]]:
    return [
        lambda path=path: model.get_submodule(path).register_forward_pre_hook(
            lambda *_: ran.update([path])
        )
        for path in paths
    ]
