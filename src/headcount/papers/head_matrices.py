"""Matrices of distances between the same heads: correlations of them, over resampled heads.

Entries of a matrix are not independent, as each head is in many of them: an interval (95 %) comes
from heads drawn with replacement, all matrices together, so that the smallest of many correlations
has one as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from headcount.likeness.agreement import Matrix, pairs
from headcount.likeness.distances import SENTENCE_BASED, TOKEN_BASED
from headcount.papers.claims import Rule, Statistic
from headcount.papers.estimates import Ends, SampleSize, statistic
from headcount.papers.finished import PaperRuns
from headcount.statistics import percentiles

Key: TypeAlias = tuple[str, str, str]
"""(phase, inputs, distance)"""
Compute: TypeAlias = Callable[[np.ndarray, np.ndarray], float]
"""From correlations (matrix, matrix) and distances (matrix, pair of heads) to one number."""

SEVEN = (*TOKEN_BASED, *SENTENCE_BASED)
BEFORE, AFTER, RANDOM = "pre-trained", "fine-tuned", "random tokens"
SHORT, SLOW = "inputs cut to 12 tokens", "fine-tuned at a fifth of the learning rate, twice as long"
PHASES = {
    "near": BEFORE,
    "near-printed": BEFORE,
    "near-random": BEFORE,
    "near-tuned": AFTER,
    "near-short": SHORT,
    "near-slow": SLOW,
}
"""Group of runs -> the phase of the model that they measured, or what they varied instead."""
RESAMPLES = 500


def matrices(finished: PaperRuns, *groups: str) -> dict[Key, Matrix]:
    """Every matrix of some groups that are done; the mean where inputs were drawn repeatedly."""
    several: dict[Key, list[Matrix]] = {}
    for group in groups:
        for run in finished.runs(group) if finished.is_whole(group) else []:
            measured = run.redundancy()
            inputs = str(run.at("task") or RANDOM)
            for name in measured.distances:
                key = (PHASES[group], inputs, name)
                several.setdefault(key, []).append(measured[name].values)
    return {key: np.mean(values, axis=0) for key, values in several.items()}


def inputs_of(matrices: Iterable[Key], phase: str) -> list[str]:
    """What heads were measured on in a phase, in order."""
    return list(dict.fromkeys(inputs for at, inputs, _ in matrices if at == phase))


def correlations(matrices: Iterable[Matrix]) -> np.ndarray:
    """(matrix, matrix) Pearson's r over pairs of heads."""
    return np.atleast_2d(np.corrcoef([pairs(matrix) for matrix in matrices]))


class HeadMatrices:
    """Matrices of the same heads, and the statistics of them that are wanted."""

    def __init__(
        self, matrices: Mapping[Key, Matrix], resamples: int = RESAMPLES, seed: int = 0
    ) -> None:
        self.keys = list(matrices)
        self.stacked = np.array(list(matrices.values()))
        self.resamples, self.seed = resamples, seed
        self._wanted: list[tuple[Compute, Callable[[Ends], Statistic]]] = []

    @property
    def heads(self) -> int:
        """How many heads there are."""
        return self.stacked.shape[1]

    def correlations(self) -> np.ndarray:
        """(matrix, matrix) Pearson's r over pairs of heads."""
        return correlations(self.stacked)

    def positions(self, which: Sequence[tuple[Key, Key]]) -> tuple[np.ndarray, np.ndarray]:
        """Where the matrices of some pairs are in `stacked`."""
        first, second = (
            [self.keys.index(key) for key in side] for side in zip(*which, strict=True)
        )
        return np.array(first), np.array(second)

    def add(
        self,
        what: str,
        compute: Compute,
        rule: Rule,
        size: SampleSize | None = None,
        note: str = "",
    ) -> None:
        """One more statistic to compute; the sample is all heads where `size` says nothing."""
        behind = size or SampleSize(self.heads, "heads")
        self._wanted.append((compute, lambda ends: statistic(what, ends, rule, behind, note)))

    def add_smallest(self, what: str, which: Sequence[tuple[Key, Key]], rule: Rule) -> None:
        """The smallest correlation between the matrices of some pairs, and which pair has it."""
        if not which:
            return
        a, b = self.positions(which)
        least = which[int(np.argmin(self.correlations()[a, b]))]
        note = f"of {len(which)} correlations, that of {_in_words(*least)}"
        self.add(what, lambda r, _: r[a, b].min(), rule, note=note)

    def statistics(self) -> list[Statistic]:
        """All that were added, in order."""
        rows, columns = np.triu_indices(self.heads, 1)
        rng = np.random.default_rng(self.seed)
        samples = np.empty((len(self._wanted), self.resamples + 1))  # the first is of all heads
        for at in range(self.resamples + 1):
            heads = rng.integers(0, self.heads, self.heads) if at else np.arange(self.heads)
            i, j = heads[rows], heads[columns]
            flat = self.stacked[:, i[i != j], j[i != j]]  # a head drawn twice never meets itself
            with np.errstate(invalid="ignore"):  # of two heads all pairs are the same: no sample
                r = np.atleast_2d(np.corrcoef(flat))
            samples[:, at] = [compute(r, flat) for compute, _ in self._wanted]
        return [
            build((float(values[0]), *percentiles(values[1:])[:2]))
            for (_, build), values in zip(self._wanted, samples, strict=True)
        ]


def _in_words(first: Key, second: Key) -> str:
    """Two matrices in words, by what they differ in and then by what they share."""
    apart = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
    same = [a for a, b in zip(first, second, strict=True) if a == b]
    return " and ".join(" ".join(side) for side in zip(*apart, strict=True)) + (
        f" ({', '.join(same)})" if same else ""
    )
