"""One pass over inputs: where every head attends, and the sums behind its replaceable share."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from headcount.base.errors import UnsupportedError, UsageError
from headcount.behaviour.patterns import (
    Band,
    Side,
    Weights,
    attention_scores,
    visible_band,
    weights_for,
)
from headcount.behaviour.replaceable import Outputs
from headcount.behaviour.result import Quantity, quantity
from headcount.behaviour.tokens import READS, Marks
from headcount.behaviour.words import ATTENTION, PATCHES
from headcount.heads import Head, Layout
from headcount.likeness.inputs import Batch
from headcount.models.batches import model_inputs
from headcount.models.capture import AttentionSource, capture
from headcount.models.sites import Site
from headcount.models.watch import watching

Array = NDArray[np.float64]


class Moments:
    """Welford's mean and sum of squared deviations, for any number of values at once.

    What is NaN does not count: every value has its own number of inputs.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.count: Array = np.zeros(shape)
        self._mean: Array = np.zeros(shape)
        self._squares: Array = np.zeros(shape)

    def add(self, values: Array) -> None:  # (input, ...)
        """Take in more inputs."""
        known = ~np.isnan(values)
        count = known.sum(0)
        total = self.count + count
        mean = np.where(known, values, 0.0).sum(0) / np.maximum(count, 1)
        squares = np.where(known, (values - mean) ** 2, 0.0).sum(0)
        apart = mean - self._mean
        share = count / np.maximum(total, 1)
        self._squares += squares + apart**2 * self.count * share
        self._mean += apart * share
        self.count = total

    @property
    def mean(self) -> Array:
        """NaN where no input had a value."""
        return np.where(self.count > 0, self._mean, np.nan)

    @property
    def stderr(self) -> Array:
        """NaN below two inputs."""
        spread = np.sqrt(self._squares / np.maximum(self.count - 1, 1) / np.maximum(self.count, 1))
        return np.where(self.count > 1, spread, np.nan)


class BatchWeights:
    """The weights of one batch, made once for each stack and band."""

    def __init__(self, sides: dict[str, Side]) -> None:
        self.sides = sides
        self._known: dict[tuple[str, Band | None], Weights] = {}

    def queries(self, stack: str) -> Side:
        """The query tokens of a stack."""
        return self.sides[READS[stack][0]]

    def weights(self, source: AttentionSource, attention: Tensor) -> Weights:
        """What turns a layer's attention, (input, head, query, key), into scores."""
        queries, keys = (self.sides[name] for name in READS[source.stack])
        size = (len(queries.ids), queries.ids.shape[1], keys.ids.shape[1])
        if (len(attention), *attention.shape[2:]) != size:
            raise UnsupportedError(
                f"{source.stack} layer {source.layer} attends over "
                f"{' x '.join(map(str, attention.shape[2:]))} positions and there are "
                f"{size[1]} x {size[2]} tokens: what its heads attend to has no name."
            )
        band = None if source.stack == "cross" else visible_band(attention, queries, keys)
        if (source.stack, band) not in self._known:
            self._known[source.stack, band] = weights_for(queries, keys, band)
        return self._known[source.stack, band]


class AttentionMeans:
    """Running means of all that is seen in attention, and the sums of the heads' outputs."""

    def __init__(self, model: nn.Module, layout: Layout, marks: Marks) -> None:
        self.model, self.layout, self.marks = model, layout, marks
        self.outputs = Outputs(model)
        self.seen, self.chance = (Moments((len(layout), len(ATTENTION))) for _ in range(2))
        self.read = 0
        """Inputs that the model has read."""
        self.count = 0
        """Those of them that have a token of text."""
        self.patches = False
        """Whether the tokens are patches of images."""
        layers = list(layout.layers())
        ends = accumulate((count for _, _, count in layers), initial=0)
        self._starts = {(stack, at): start for (stack, at, _), start in zip(layers, ends)}  # noqa: B905

    def take(self, batch: Batch) -> dict[str, Side]:
        """Read one batch; gives its tokens."""
        sides = self.marks.sides(self.model, batch)
        self.patches = bool(sides["encoder"].columns)
        batch_weights, inputs = BatchWeights(sides), len(sides["encoder"].ids)
        scores: dict[tuple[str, int], list[tuple[Tensor, Tensor]]] = {}

        def see(source: AttentionSource, attention: Tensor) -> None:
            if attention.shape[1]:
                weights = batch_weights.weights(source, attention)
                values = attention_scores(attention, weights)
                self._require_numbers(source, values, weights)
                scores.setdefault(source[:2], []).append((values, weights.chance))

        def sum_up(site: Site, args: tuple[Tensor, ...], _: Tensor) -> None:
            self.outputs.add(site, args[0], batch_weights.queries(site.stack).real, self.read)

        with (
            torch.no_grad(),
            watching(self.model, self.outputs.projections, sum_up),
            capture(self.model, see),
        ):
            self.model(**model_inputs(self.model, batch))
        self._add(scores, inputs)
        self.read += inputs
        text = torch.stack([side.text.any(1) for side in sides.values()]).any(0)
        self.count += int(text.sum())
        return sides

    def _add(self, scores: dict[tuple[str, int], list[tuple[Tensor, Tensor]]], inputs: int) -> None:
        values, chance = np.full((2, inputs, len(self.layout), len(ATTENTION)), np.nan)
        for layer, uses in scores.items():
            # over the runs of a shared layer, the mean
            layer_scores = torch.stack([seen for seen, _ in uses]).mean(0).cpu().numpy()
            start = self._starts[layer]
            heads = slice(start, start + layer_scores.shape[1])
            values[:, heads] = layer_scores
            expected = torch.stack([chances for _, chances in uses]).mean(0).cpu().numpy()
            chance[:, heads] = expected[:, None]
        self.seen.add(values)
        self.chance.add(np.where(np.isnan(values), np.nan, chance))

    def _require_numbers(self, source: AttentionSource, seen: Tensor, weights: Weights) -> None:
        bad = (weights.defined[:, None] & ~torch.isfinite(seen)).any(-1).nonzero()
        if len(bad):
            head = self.layout.original(Head(source.stack, source.layer, int(bad[0, 1])))
            raise UsageError(
                f"The attention of head {head} holds NaN or infinite values on input "
                f"{self.read + int(bad[0, 0]) + 1} or soon after; check the model's weights and "
                "dtype."
            )

    @property
    def separators(self) -> dict[str, str | None]:
        """What the heads of each stack see as separators: special, punctuation, or nothing."""
        by_side = self.marks.separators
        return {stack.name: by_side[READS[stack.name][1]] for stack in self.layout.stacks}

    @property
    def tokens(self) -> int:
        """Tokens behind the replaceable shares, of the layer that saw most."""
        return max(self.outputs.tokens.values(), default=0)

    @property
    def unknowns(self) -> int:
        """What the widest layer's replaceable shares are solved for."""
        return max((len(rows) for rows in self.outputs.rows.values()), default=0)

    def quantities(self) -> dict[str, Quantity]:
        """Every quantity of attention, by name."""
        if not self.count:
            raise UsageError("No input has a token of text: there is nothing to see roles on.")
        mean, stderr, count = self.seen.mean, self.seen.stderr, self.seen.count
        chance = self.chance.mean
        words = ATTENTION | (PATCHES if self.patches else {})
        return {
            name: quantity(
                name, mean[:, at], stderr[:, at], count[:, at], chance=chance[:, at],
                unit=unit, what=what,
            )
            for at, (name, (unit, what)) in enumerate(words.items())
        }  # fmt: skip
