"""One head of each cluster of similar heads stays: zero-shot, no labels and no training.

On Attention Redundancy (NAACL 2021), section 7.1. Distances between heads come from a redundancy
file or value, or are measured here, on inputs that are given or on random tokens. Spectral
clustering makes ⌈H (1 - p)⌉ clusters, each stack with its share; without a ratio the `counter`
finds the number. The seed is that of the clustering: seeds are the paper's trials.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from headcount.base.errors import UsageError
from headcount.base.options import checked
from headcount.heads import Head, Layout, Scores
from headcount.heads.choose import keep_in_parts
from headcount.pruning.counts import parts_of, share_out
from headcount.pruning.methods import Decide, Decision, MethodInputs
from headcount.pruning.select import as_layout

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedTokenizerBase

    from headcount.likeness.result import Redundancy
    from headcount.tasks.as_rows import Rows

Matrices = Mapping[str, NDArray[np.floating]]
"""stack -> (head, head)"""
RANDOM = 200
"""Random inputs that distances are measured on when there are no others."""
LONGEST = 48
"""Tokens of the longest of them."""
NOISE = 3
"""Inputs of noise where each is long: a spoken half minute has 1,500 positions."""
FRAMES = 512
"""Frames of sound above which an input is long."""
MANY = 1536
"""Heads of a stack above which fewer random inputs do, and the time is noted."""
PER_INPUT = 5e-7
"""Seconds of one core for a pair of heads on one such input, measured at 4,096 heads."""

talk = logging.getLogger("headcount")


@dataclass(frozen=True, kw_only=True)
@checked
class Cluster:
    """The representatives of clusters, drawn anew for every seed.

    Without `redundancy` distances are measured on the inputs that are given, or on random tokens.

    >>> far = np.array([[0, 0.1, 0.9], [0.1, 0, 0.9], [0.9, 0.9, 0]])
    >>> method = Cluster(redundancy={"encoder": far})
    >>> method.prepare(Layout.of(encoder=[3]), MethodInputs())(1 / 3, 0).mask
    Mask(encoder: 2; keeps 2 of 3 heads)
    """

    needs: ClassVar = "inputs"
    ratio: ClassVar = "free"

    redundancy: Any = field(default=None, metadata={"typed": tuple[Path, ...]})
    """File of `headcount redundancy`, or what `hc.redundancy` gave; of several, the mean."""
    distances: tuple[str, ...] = ()
    """Distances to use; of several, the mean is taken."""
    counter: Literal["affinity", "hdbscan"] = "affinity"
    """Without a ratio, what finds the number."""
    by: Literal["silhouette", "medoid"] = "silhouette"
    """The head that stays."""

    def __post_init__(self) -> None:
        if isinstance(self.distances, str):
            object.__setattr__(self, "distances", (self.distances,))

    def prepare(self, model: nn.Module | Layout, given: MethodInputs) -> Decide:
        """Read or measure the distances; the clustering is done for every ratio and seed."""
        layout = as_layout(model)
        names = list(self.distances) or None
        distances = _measure(model, given, names) if self.redundancy is None else self.redundancy
        matrices = _complete(layout, read_matrices(distances, layout, names))
        return lambda ratio, seed: self._decide(layout, matrices, ratio, seed)

    def _decide(
        self, layout: Layout, matrices: Matrices, ratio: float | None, seed: int
    ) -> Decision:
        from headcount.likeness.clusters import cluster, representatives

        parts = parts_of(layout, "stack")
        counts: list[int | None] = [None] * len(parts)
        if ratio is not None:
            sizes = [stack.total for stack in layout.stacks]
            counts = [*share_out(sizes, layout.kept_at(ratio))]
        kept: set[Head] = set()
        for stack, count in zip(layout.stacks, counts, strict=True):
            heads = [head for head in layout if head.stack == stack.name]
            labels = cluster(matrices[stack.name], count, counter=self.counter, seed=seed)
            kept |= {heads[i] for i in representatives(matrices[stack.name], labels, by=self.by)}
        # where heads share keys and values, the nearest set that can be removed
        scores = Scores(layout, tuple(float(head in kept) for head in layout))
        numbers = [sum(head.stack == stack.name for head in kept) for stack in layout.stacks]
        return Decision(mask=keep_in_parts(scores, zip(parts, numbers, strict=True)))


def read_matrices(source: object, layout: Layout, distances: list[str] | None) -> Matrices:
    """stack -> (head, head) of a redundancy file, value or mapping, or the mean of several."""
    if isinstance(source, list | tuple):
        several = [read_matrices(part, layout, distances) for part in source]
        if not several:
            raise UsageError("The mean of no redundancy matrix is requested.")
        from headcount.likeness.clusters import mean_matrix

        stacks = set.intersection(*({*matrices} for matrices in several))
        return {name: mean_matrix([matrices[name] for matrices in several]) for name in stacks}
    from headcount.likeness.result import Redundancy, load_redundancy

    if isinstance(source, str | os.PathLike):
        source = load_redundancy(source)
    if isinstance(source, Mapping):
        for name in source:
            layout[name]
        return source
    if not isinstance(source, Redundancy):
        raise UsageError(f"Redundancy is a file or what hc.redundancy gave, not {source!r:.60}.")
    counts = [(stack.name, stack.heads) for stack in source.layout.stacks]
    if counts != [(stack.name, stack.heads) for stack in layout.stacks]:
        raise UsageError(f"The redundancy is of another model: {source.layout}, not {layout}.")
    return source.matrices(distances)


def _complete(layout: Layout, matrices: Matrices) -> Matrices:
    """A matrix for every stack; one head alone has no distances, and needs none."""
    full = dict(matrices)
    for stack in layout.stacks:
        if stack.name not in full:
            if stack.total > 1:
                raise UsageError(f"There is no redundancy matrix of the {stack.name}.")
            full[stack.name] = np.zeros((stack.total, stack.total))
        if len(full[stack.name]) != stack.total:
            raise UsageError(
                f"The {stack.name} matrix is of {len(full[stack.name])} heads; the model has "
                f"{stack.total}."
            )
    return full


def _measure(
    model: nn.Module | Layout, given: MethodInputs, distances: list[str] | None
) -> Redundancy:
    from headcount.likeness.measure import redundancy
    from headcount.likeness.options import DistanceOptions

    if isinstance(model, Layout):
        raise UsageError("The method 'cluster' needs a model, or the redundancy of its heads.")
    inputs, tokenizer = given.inputs, given.tokenizer
    heads = max((stack.total for stack in as_layout(model).stacks), default=0)
    if inputs is None:
        inputs = random_inputs(model, tokenizer, rows_for_heads(heads))
    if heads > MANY:
        talk.warning(
            "Distances between %s heads take about %.0f s of one core for every input: measure "
            "them once with headcount redundancy, and pass --redundancy FILE.",
            f"{heads:,}", PER_INPUT * heads**2,
        )  # fmt: skip
    return redundancy(model, inputs, distances or DistanceOptions.distances, tokenizer=tokenizer)


def rows_for_heads(heads: int) -> int:
    """Random inputs to measure on: of thousands of heads as many as take as long as of `MANY`.

    >>> rows_for_heads(144), rows_for_heads(1536), rows_for_heads(4096)
    (200, 200, 28)
    """
    return RANDOM if heads <= MANY else max(1, int(RANDOM * (MANY / heads) ** 2))


def random_inputs(
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase | None = None,
    count: int = RANDOM,
    seed: int = 0,
) -> Rows:
    """Random tokens of uniformly drawn lengths; without a tokenizer, no special tokens.

    What reads sound or images is given noise, and a decoder that makes no inputs of texts random
    tokens of its own.
    """
    if tokenizer is not None and _reads_rows(model):
        import torch

        from headcount.tasks.masking import random_tokens

        generator = torch.Generator().manual_seed(seed)
        longest = min(LONGEST, _positions(model))
        return random_tokens(tokenizer, count, min(6, longest), longest, generator)
    from headcount.models.probe import probe_inputs

    batch = 10
    first = probe_inputs(model, batch=1, length=6, seed=seed)
    if any(value.is_floating_point() and value.shape[-1] > FRAMES for value in first.values()):
        batch, count = 1, min(count, NOISE)
        talk.warning(
            "%s reads long inputs: heads are compared on %d of noise only, which takes a while. "
            "Pass --redundancy FILE for distances that were measured on inputs of your own.",
            type(model).__name__, count,
        )  # fmt: skip
    lengths = np.random.default_rng(seed).integers(6, 1 + min(LONGEST, _positions(model)), count)
    batches = []
    for number, length in enumerate(lengths[: max(1, count // batch)].tolist()):
        inputs = probe_inputs(model, batch=batch, length=length, seed=seed + number)
        inputs.pop("attention_mask", None)  # its padding is there for tests
        batches.append(inputs)
    return batches


def _reads_rows(model: nn.Module) -> bool:
    """Whether rows of tokens are all that it reads: a decoder must make its inputs of them."""
    from headcount.models.probe import reads_text

    config = model.config
    shifts = hasattr(model, "prepare_decoder_input_ids_from_labels")
    return reads_text(type(model)) and (shifts or not getattr(config, "is_encoder_decoder", False))


def _positions(model: nn.Module) -> int:
    from headcount.costs.flops import POSITIONS

    config: Any = model.config
    config = config.get_text_config()
    named = [getattr(config, name, None) for name in POSITIONS]
    positions = min((size for size in named if isinstance(size, int)), default=None)
    # RoBERTa's first positions are behind its padding token
    return positions - 4 if isinstance(positions, int) and positions > 12 else LONGEST
