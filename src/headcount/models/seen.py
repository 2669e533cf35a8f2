"""What a probe input shows of each attention layer: if it runs, what it is lent, if it is heard.

A cut can only be verified on an input that reaches the layer, calls all its projections, and on
which its heads say something: where masking changes no number, anything looks exact.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from headcount.base.errors import UnsupportedError
from headcount.heads import Mask
from headcount.models import cut
from headcount.models.hooks import hooked
from headcount.models.probes import find_probes
from headcount.models.sites import Site, linear_sizes


@dataclass
class SiteProbe:
    """What one run showed of one site."""

    share: str = ""
    """What the model lends it: see `cut.py`."""
    returns: int = 2
    batch_axis: int = 0
    reached: bool = False
    projected: bool = False
    """Whether its output projection ran; where it does not, gates refuse to act."""
    called: set[str] = field(default_factory=set)
    """The site's linear children that ran, without the output projection."""
    heard: set[int] = field(default_factory=set)
    """Heads that contributed more than nothing to the output projection."""


def watch_lending(model: nn.Module, sites: list[Site]) -> dict[str, SiteProbe]:
    """How each site shares what the model lends per head; works on a skeleton, too."""
    parts = []
    for probe in find_probes(model, sites):
        with seeing(model, sites, probe.batch, listen=False) as seen:
            probe.run(model)
        parts.append(seen)
    return joined(sites, parts)


def joined(sites: list[Site], parts: Iterable[dict[str, SiteProbe]]) -> dict[str, SiteProbe]:
    """What several probes showed: how a site is called by the first that reaches it."""
    parts = list(parts)
    seen = {}
    for site in sites:
        here = [part[site.path] for part in parts]
        first = next((one for one in here if one.reached), SiteProbe())
        seen[site.path] = replace(
            first,
            share=next((one.share for one in here if one.share), ""),
            projected=any(one.projected for one in here),
            called=set().union(*(one.called for one in here)),
            heard=set().union(*(one.heard for one in here)),
        )
    return seen


@contextmanager
def seeing(
    model: nn.Module, sites: list[Site], batch: int, *, listen: bool = True
) -> Generator[dict[str, SiteProbe]]:
    """Inside, a run on so many examples is watched; `listen` also for heads that say nothing.

    Heads are listened to before gates that are put on inside have closed them.
    """
    seen = {site.path: SiteProbe() for site in sites}
    hooks: list[Callable[[], object]] = []
    for site in sites:
        hooks += _hooks(model, site, seen[site.path], batch, listen=listen)
    with hooked(hooks):
        yield seen


def require_seen(
    model: nn.Module, sites: list[Site], seen: dict[str, SiteProbe], mask: Mask
) -> None:
    """Refuse an input on which a cut of these sites could not be verified."""
    for site in sites:
        kept = set(mask.indices(site.stack, site.layer))
        if len(kept) == site.heads:
            continue
        module = model.get_submodule(site.path)
        here = seen[site.path]
        missed = [] if here.reached else [site.path]
        # projections for another kind of input; none is called where the weights are used directly
        if here.called & {child for child, _ in site.projections}:
            missed += [f"{site.path}.{n}" for n in _linear(module, site) if n not in here.called]
        if missed:
            raise UnsupportedError(
                f"The probe input does not reach {missed[0]}, so removing its heads cannot be "
                "verified; pass one that does with probe=."
            )
        silent = here.projected and not here.heard & (kept or set(range(site.heads)))
        if silent and not _silent_by_weights(model, site):
            raise UnsupportedError(
                f"On the probe input the heads of {site.path} add nothing, so removing some cannot "
                "be verified; pass an input on which they do with probe=, or hide heads with "
                "hc.gate(model, mask)."
            )


def _linear(module: nn.Module, site: Site) -> list[str]:
    """The module's linear children, without the output projection."""
    children = {name for name, child in module.named_children() if linear_sizes(child)}
    return sorted(children - {site.out.removeprefix(f"{site.path}.")})


def _silent_by_weights(model: nn.Module, site: Site) -> bool:
    """Whether the output projection drops everything anyway: then nothing can be cut wrongly."""
    weight: Any = model.get_submodule(site.out).weight
    return not bool(weight.any())


def _hooks(
    model: nn.Module, site: Site, seen: SiteProbe, batch: int, *, listen: bool
) -> list[Callable[[], object]]:
    module, out = model.get_submodule(site.path), model.get_submodule(site.out)

    def lent(_: object, args: tuple, kwargs: dict) -> None:
        seen.reached = True
        if hasattr(module, "has_relative_attention_bias") and hasattr(module, "compute_bias"):
            seen.share = "relative-share"
            return
        given = [kwargs.get(name) for name in cut.PER_HEAD_ARGUMENTS] + list(args[1:])
        if isinstance(kwargs.get("alibi"), Tensor) or any(
            isinstance(t, Tensor) and t.ndim == 4 and t.shape[1] == site.heads > 1 for t in given
        ):
            seen.share = "share"

    def returned(_module: object, _args: tuple, output: object) -> None:
        first = output[0] if isinstance(output, (tuple, list)) else output
        seen.returns = max(2, len(output)) if isinstance(output, (tuple, list)) else 0
        if isinstance(first, Tensor) and first.ndim == 3:
            seen.batch_axis = int(first.shape[0] != batch and first.shape[1] == batch)

    def ran(name: str) -> Callable[..., None]:
        return lambda *_: seen.called.add(name)

    def heard(_: object, args: tuple) -> None:
        seen.projected = True
        if listen and site.heads:
            seen.heard |= _heard(out, args[0], site)

    hooks: list[Callable[[], object]] = [
        lambda: module.register_forward_pre_hook(lent, with_kwargs=True),
        lambda: module.register_forward_hook(returned),
        lambda: out.register_forward_pre_hook(heard),
    ]
    for name in _linear(module, site):
        child = module.get_submodule(name)
        hooks.append(lambda child=child, name=name: child.register_forward_pre_hook(ran(name)))
    return hooks


def _heard(out: Any, z: Tensor, site: Site) -> set[int]:
    """The heads whose slice of `z` changes what the output projection returns."""
    weight = out.weight if type(out).__name__ == "Conv1D" else out.weight.T
    loud = set()
    for head in range(site.heads):
        columns = slice(head * site.head_dim, (head + 1) * site.head_dim)
        added = z.detach()[..., columns] @ weight[columns].to(z.dtype)
        if bool(torch.count_nonzero(added)):
            loud.add(head)
    return loud
