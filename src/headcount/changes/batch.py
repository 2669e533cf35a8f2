"""One batch through both models: what every input says about each head and layer.

The first model's attention is held, the second's is compared layer by layer as it comes and let
go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from headcount.base.errors import UnsupportedError
from headcount.changes.divergence import fitting, js_divergence, l2_distance
from headcount.heads import Layout
from headcount.likeness.attention import padding_masks
from headcount.likeness.inputs import Batch
from headcount.models.batches import model_inputs
from headcount.models.capture import AttentionSource, capture
from headcount.models.layers import find_layers
from headcount.models.watch import watching

Found = dict[tuple[str, str], NDArray[np.float64]]
"""(stack, what) -> numbers of one input: `js` by head; `layer`, `l2` and `relative` by layer."""


def compare_batch(
    left: PreTrainedModel, right: PreTrainedModel, batch: Batch, layout: Layout
) -> list[Found]:
    """What each input of a batch adds."""
    rows = len(next(iter(batch.values())))
    masks = padding_masks(left, batch)
    held: dict[tuple[str, AttentionSource], Tensor] = {}
    _watched(left, batch, lambda what, source, value: held.__setitem__((what, source), value))
    values: dict[tuple[str, str, int], list[Tensor]] = {}  # one tensor for each run of the layer

    def meet(what: str, source: AttentionSource, value: Tensor) -> None:
        before = held.pop((what, source), None)
        if before is None:
            raise UnsupportedError(f"The first model does not run {source.stack} {source.layer}.")
        queries, keys = masks.get(source.stack, (None, None))
        name = f"{source.stack} layer {source.layer}"
        queries = fitting(queries, value.shape[2 if what == "js" else 1], len(value), name)
        if what == "js":
            keys = fitting(keys, value.shape[3], len(value), name)
            parts = {"js": js_divergence(before, value, queries, keys, batch=rows)}
        else:
            apart, relative = l2_distance(before, value, queries, batch=rows)
            parts = {"l2": apart[:, None], "relative": relative[:, None]}
        for kind, part in parts.items():
            values.setdefault((source.stack, kind, source.layer), []).append(part)

    _watched(right, batch, meet)
    means = {key: torch.stack(parts).mean(0).cpu().numpy() for key, parts in values.items()}
    return _rows(means, layout, rows)


def _watched(
    model: PreTrainedModel, batch: Batch, take: Callable[[str, AttentionSource, Tensor], object]
) -> None:
    """Run the model; hand over each layer's attention (`js`) and output (`l2`) as they come."""
    runs: dict[str, int] = {}

    def keep(where: tuple[str, str, int], _: object, output: object) -> None:
        path, stack, layer = where
        hidden = output[0] if isinstance(output, tuple) else output
        use = runs[path] = runs.get(path, -1) + 1
        if isinstance(hidden, Tensor) and hidden.ndim >= 3:
            # a copy: the next layer may write into its input
            take("l2", AttentionSource(stack, layer, use), hidden.detach().clone())

    layers: list[tuple[tuple[str, str, int], str]] = []
    for layer in find_layers(model):
        sites = [site for site in layer.sites if site.stack != "cross"] or list(layer.sites)
        layers.append(((layer.path, sites[-1].stack, sites[-1].layer), layer.path))
    seen = capture(model, lambda source, value: take("js", source, value))
    with seen, watching(model, layers, keep):
        model(**model_inputs(model, batch))


def _rows(
    means: Mapping[tuple[str, str, int], NDArray[np.float64]], layout: Layout, rows: int
) -> list[Found]:
    """The batch's numbers input by input, by stack: of heads, of layers' heads, of layers."""
    out: list[Found] = [{} for _ in range(rows)]
    for stack in layout.stacks:
        reached = [layer for layer in range(len(stack.heads)) if (stack.name, "js", layer) in means]
        if not reached:
            continue
        if len(reached) < len(stack.heads):
            raise UnsupportedError(
                f"These inputs reach {len(reached)} of the {len(stack.heads)} {stack.name} layers."
            )
        blank = np.full((rows, 1), np.nan)
        heads = [means[stack.name, "js", layer] for layer in reached]
        whole = [values.mean(1, keepdims=True) if values.size else blank for values in heads]
        sides = [
            [means.get((stack.name, what, layer), blank) for layer in reached]
            for what in ("l2", "relative")
        ]
        for name, parts in zip(
            ("js", "layer", "l2", "relative"), (heads, whole, *sides), strict=True
        ):
            joined = np.concatenate(parts, axis=1)
            for row in range(rows):
                out[row][stack.name, name] = joined[row]
    return out
