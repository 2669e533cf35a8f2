"""Which heads a model has: `layout(model)`, and the checks that a mask is for this model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from headcount.base.errors import UnsupportedError, UsageError
from headcount.heads import Layout, Mask, Stack
from headcount.heads.as_mask import MaskLike
from headcount.models.door import require_model
from headcount.models.memory import remembered
from headcount.models.numbers import numbered, read_mask
from headcount.models.probes import find_probes
from headcount.models.sites import Site, find_sites
from headcount.models.unread import UnreadAttention, describe, find_unread


def unwrap(model: Any) -> nn.Module:
    """The model inside DistributedDataParallel or torch.compile."""
    if isinstance(model, nn.parallel.DistributedDataParallel):
        return unwrap(model.module)
    if hasattr(model, "_orig_mod"):
        return unwrap(model._orig_mod)
    return model


def sites_of(model: nn.Module) -> list[Site]:
    """The attention modules of a model, or a clear refusal when there are none."""
    bare = unwrap(model)
    sites = list(remembered(bare, "sites", lambda: tuple(find_sites(bare))))
    if not sites:
        kind = getattr(getattr(model, "config", None), "model_type", type(model).__name__)
        seen = describe(find_unread(unwrap(model), []))
        raise UnsupportedError(
            f"headcount finds no attention heads in {type(model).__name__} ('{kind}'): it looks "
            "for modules with query, key, value and output projections"
            + (f", and does not understand {'; '.join(seen)}." if seen else ".")
        )
    return sites


def layout(model: nn.Module) -> Layout:
    """Which heads `model` has. Runs it once on a small input to see which layers are shared.

    >>> from transformers import BertConfig, BertModel
    >>> layout(BertModel(BertConfig(num_hidden_layers=2, hidden_size=48, num_attention_heads=3)))
    Layout(encoder: 2 layers x 3 heads)
    """
    model = require_model(unwrap(model), "hc.layout")
    return remembered(model, "layout", lambda: _layout(model))


def _layout(model: nn.Module) -> Layout:
    sites = sites_of(model)
    layout = layout_of(sites, count_uses(model, sites), find_unread(model, sites))
    return numbered(model, sites, layout)


def layout_of(
    sites: list[Site], uses: dict[str, int] | None = None, unread: Iterable[UnreadAttention] = ()
) -> Layout:
    """The layout of these sites; `uses` says how often each one runs (default: every place once).

    `unread` is the attention beside them that is not understood.
    """
    stacks = []
    for name in dict.fromkeys(site.stack for site in sites):
        members = [site for site in sites if site.stack == name]
        stacks.append(
            Stack(
                name,
                tuple(site.heads for site in members),
                tuple(site.groups for site in members),
                tuple((uses or {}).get(site.path, len(site.places)) for site in members),
            )
        )
    return Layout(tuple(stacks), describe(unread))


def count_uses(model: nn.Module, sites: list[Site]) -> dict[str, int]:
    """How often one forward pass runs each site; those that no probe reaches count once."""
    uses: dict[str, int] = {}
    try:
        probes = find_probes(model, sites)
    except UsageError:
        raise
    except Exception:
        return {}  # what kind of input it takes is not known here; the heads are
    for probe in probes:
        here = {site.path: sum(probe.ran.get(p, 0) for p, _ in site.places) for site in sites}
        uses = {path: count for path, count in here.items() if count} | uses
    return uses


def require_layout(model: nn.Module, layout: Layout) -> None:
    """Refuse a layout that is not this model's (how often layers are used does not matter)."""
    actual = layout_of(sites_of(model))
    if [(s.name, s.heads, s.groups) for s in actual.stacks] != [
        (s.name, s.heads, s.groups) for s in layout.stacks
    ]:
        raise UsageError(f"The mask is for another layout: {layout}, not {actual}.")


def mask_for(model: nn.Module, given: MaskLike | Tensor) -> Mask:
    """The mask of this model that was given, in whatever form; one of another model is refused."""
    mask = given if isinstance(given, Mask) else read_mask(given, model, layout(model))
    require_layout(model, mask.layout)
    return mask
