"""One pass over inputs: where every head looks, and the sums behind its stand-in share."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import torch
from torch import Tensor, nn

from headcount.base.errors import UnsupportedError, UsageError
from headcount.behaviour.moments import Moments
from headcount.behaviour.patterns import Band, Side, Weights, look, sight, weights_for
from headcount.behaviour.result import Quantity, quantity
from headcount.behaviour.stand_in import Outputs
from headcount.behaviour.tokens import READS, Marks
from headcount.behaviour.words import LOOKS
from headcount.heads import Head, Layout
from headcount.likeness.inputs import Batch
from headcount.models.batches import model_inputs
from headcount.models.capture import AttentionSource, capture
from headcount.models.sites import Site
from headcount.models.watch import watching


class BatchWeights:
    """The weights of one batch, made once for each stack and band."""

    def __init__(self, sides: dict[str, Side]) -> None:
        self.sides = sides
        self._known: dict[tuple[str, Band | None], Weights] = {}

    def queries(self, stack: str) -> Side:
        """The tokens of a stack that look."""
        return self.sides[READS[stack][0]]

    def weights(self, place: AttentionSource, attention: Tensor) -> Weights:
        """What a layer's attention, (input, head, query, key), is looked at with."""
        queries, keys = (self.sides[name] for name in READS[place.stack])
        size = (len(queries.ids), queries.ids.shape[1], keys.ids.shape[1])
        if (len(attention), *attention.shape[2:]) != size:
            raise UnsupportedError(
                f"{place.stack} layer {place.layer} attends over "
                f"{' x '.join(map(str, attention.shape[2:]))} places and there are "
                f"{size[1]} x {size[2]} tokens: what its heads look at has no name."
            )
        band = None if place.stack == "cross" else sight(attention, queries, keys)
        if (place.stack, band) not in self._known:
            self._known[place.stack, band] = weights_for(queries, keys, band)
        return self._known[place.stack, band]


class AttentionMeans:
    """Running means of all that is seen in attention, and the sums of the heads' outputs."""

    def __init__(self, model: nn.Module, layout: Layout, marks: Marks) -> None:
        self.model, self.layout, self.marks = model, layout, marks
        self.outputs = Outputs(model)
        self.seen, self.chance = (Moments((len(layout), len(LOOKS))) for _ in range(2))
        self.read = 0
        """Inputs that the model has read."""
        self.count = 0
        """Those of them that have a token of text."""
        layers = list(layout.layers())
        ends = accumulate((count for _, _, count in layers), initial=0)
        self._starts = {(stack, at): start for (stack, at, _), start in zip(layers, ends)}  # noqa: B905

    def take(self, batch: Batch) -> dict[str, Side]:
        """Read one batch; gives its tokens."""
        sides = self.marks.sides(self.model, batch)
        sights, inputs = BatchWeights(sides), len(sides["encoder"].ids)
        found: dict[tuple[str, int], list[tuple[Tensor, Tensor]]] = {}

        def see(place: AttentionSource, attention: Tensor) -> None:
            if attention.shape[1]:
                weights = sights.weights(place, attention)
                seen = look(attention, weights)
                self._require_numbers(place, seen, weights)
                found.setdefault(place[:2], []).append((seen, weights.chance))

        def sum_up(site: Site, args: tuple[Tensor, ...], _: Tensor) -> None:
            self.outputs.add(site, args[0], sights.queries(site.stack).real, self.read)

        with (
            torch.no_grad(),
            watching(self.model, self.outputs.outs, sum_up),
            capture(self.model, see),
        ):
            self.model(**model_inputs(self.model, batch))
        self._add(found, inputs)
        self.read += inputs
        text = torch.stack([side.text.any(1) for side in sides.values()]).any(0)
        self.count += int(text.sum())
        return sides

    def _add(self, found: dict[tuple[str, int], list[tuple[Tensor, Tensor]]], inputs: int) -> None:
        values, chance = np.full((2, inputs, len(self.layout), len(LOOKS)), np.nan)
        for layer, uses in found.items():
            # over the runs of a shared layer, the mean
            own = torch.stack([seen for seen, _ in uses]).mean(0).cpu().numpy()
            heads = slice(self._starts[layer], self._starts[layer] + own.shape[1])
            values[:, heads] = own
            expected = torch.stack([each for _, each in uses]).mean(0).cpu().numpy()
            chance[:, heads] = expected[:, None]
        self.seen.add(values)
        self.chance.add(np.where(np.isnan(values), np.nan, chance))

    def _require_numbers(self, place: AttentionSource, seen: Tensor, weights: Weights) -> None:
        bad = (weights.defined[:, None] & ~torch.isfinite(seen)).any(-1).nonzero()
        if len(bad):
            head = self.layout.original(Head(place.stack, place.layer, int(bad[0, 1])))
            raise UsageError(
                f"The attention of head {head} holds NaN or infinite values on input "
                f"{self.read + int(bad[0, 0]) + 1} or soon after; look at the model's weights and "
                "dtype."
            )

    @property
    def separators(self) -> dict[str, str | None]:
        """What the heads of each stack see as separators: special, punctuation, or nothing."""
        told = self.marks.separators
        return {stack.name: told[READS[stack.name][1]] for stack in self.layout.stacks}

    @property
    def tokens(self) -> int:
        """Tokens behind the stand-in shares, of the layer that saw most."""
        return max(self.outputs.tokens.values(), default=0)

    @property
    def unknowns(self) -> int:
        """What the widest layer's stand-in shares are solved for."""
        return max((len(rows) for rows in self.outputs.rows.values()), default=0)

    def quantities(self) -> dict[str, Quantity]:
        """Every quantity of attention, by name."""
        if not self.count:
            raise UsageError("No input has a token of text: there is nothing to see roles on.")
        mean, stderr, chance = self.seen.mean, self.seen.stderr, self.chance.mean
        return {
            name: quantity(
                name, mean[:, at], stderr[:, at], self.seen.count[:, at], chance=chance[:, at]
            )
            for at, name in enumerate(LOOKS)
        }
