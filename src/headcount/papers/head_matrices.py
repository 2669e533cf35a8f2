"""Matrices of distances between the same heads: correlations of them, with heads drawn anew.

Entries of a matrix are not independent, as each head is in many of them: an interval (95 %) comes
from heads drawn with replacement, all matrices together, so that the smallest of many correlations
has one as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from headcount.likeness.agreement import Matrix, pairs
from headcount.papers.claims import TestedStatistic
from headcount.papers.finished import PaperRuns
from headcount.papers.seeds import Rule
from headcount.statistics import percentiles

Key: TypeAlias = tuple[str, str, str]
"""(phase, inputs, distance)"""
Statistic: TypeAlias = Callable[[np.ndarray, np.ndarray], float]
"""From correlations (matrix, matrix) and distances (matrix, pair of heads) to one number."""
Interval: TypeAlias = tuple[float, float, float]

BEFORE, AFTER, RANDOM = "pre-trained", "fine-tuned", "random tokens"
SHORT, SLOW = "inputs cut to 12 tokens", "fine-tuned at a fifth of the learning rate, twice as long"
PHASES = {"near": BEFORE, "near-printed": BEFORE, "near-random": BEFORE, "near-tuned": AFTER,
          "near-short": SHORT, "near-slow": SLOW}  # fmt: skip
"""Group of runs -> the phase of the model that they measured, or what they varied instead."""
DRAWS = 500


def matrices(found: PaperRuns, *groups: str) -> dict[Key, Matrix]:
    """Every matrix of some groups that are done; the mean where inputs were drawn repeatedly."""
    several: dict[Key, list[Matrix]] = {}
    for group in groups:
        for each in found.runs(group) if found.is_whole([group]) else []:
            measured = each.redundancy()
            inputs = str(each.at("task") or RANDOM)
            for name in measured.distances:
                key = (PHASES[group], inputs, name)
                several.setdefault(key, []).append(measured[name].values)
    return {key: np.mean(values, axis=0) for key, values in several.items()}


def inputs_of(matrices: Iterable[Key], phase: str) -> list[str]:
    """What heads were measured on in a phase, in order."""
    return list(dict.fromkeys(inputs for own, inputs, _ in matrices if own == phase))


class HeadMatrices:
    """Matrices of the same heads, and statistics of them that are asked for."""

    def __init__(self, matrices: Mapping[Key, Matrix], draws: int = DRAWS, seed: int = 0) -> None:
        self.keys = list(matrices)
        self.stacked = np.array(list(matrices.values()))
        self.draws, self.seed = draws, seed
        self._asked: list[tuple[Statistic, Callable[[Interval], TestedStatistic]]] = []

    @property
    def heads(self) -> int:
        """How many heads there are."""
        return self.stacked.shape[1]

    def correlations(self) -> np.ndarray:
        """(matrix, matrix) Pearson's r over pairs of heads."""
        return np.atleast_2d(np.corrcoef([pairs(matrix) for matrix in self.stacked]))

    def places(self, which: Sequence[tuple[Key, Key]]) -> tuple[np.ndarray, np.ndarray]:
        """Where the matrices of some pairs stand."""
        own, other = zip(*which, strict=True)
        first, second = ([self.keys.index(key) for key in side] for side in (own, other))
        return np.array(first), np.array(second)

    def ask(
        self,
        what: str,
        statistic: Statistic,
        rule: Rule,
        *,
        n: int | None = None,
        of: str = "heads",
        note: str = "",
    ) -> None:
        """One more line of the answer."""

        def told(found: Interval) -> TestedStatistic:
            return TestedStatistic(
                what=what, value=found[0], low=found[1], high=found[2],
                verdict=rule(*found), n=self.heads if n is None else n, of=of,
                note=note,
            )  # fmt: skip

        self._asked.append((statistic, told))

    def ask_smallest(self, what: str, which: Sequence[tuple[Key, Key]], rule: Rule) -> None:
        """The smallest correlation between the matrices of some pairs, and which pair has it."""
        if not which:
            return
        a, b = self.places(which)
        least = which[int(np.argmin(self.correlations()[a, b]))]
        note = f"of {len(which)} correlations, that of {_said(*least)}"
        self.ask(what, lambda r, _: r[a, b].min(), rule, note=note)

    def answers(self) -> list[TestedStatistic]:
        """All that was asked, in order."""
        rows, columns = np.triu_indices(self.heads, 1)
        rng = np.random.default_rng(self.seed)
        samples = np.empty((len(self._asked), self.draws + 1))
        for draw in range(self.draws + 1):
            chosen = rng.integers(0, self.heads, self.heads) if draw else np.arange(self.heads)
            i, j = chosen[rows], chosen[columns]
            flat = self.stacked[:, i[i != j], j[i != j]]  # a head drawn twice never meets itself
            with np.errstate(invalid="ignore"):  # of two heads all pairs are the same: no draw
                r = np.atleast_2d(np.corrcoef(flat))
            samples[:, draw] = [statistic(r, flat) for statistic, _ in self._asked]
        return [
            told((float(values[0]), *percentiles(values[1:])[:2]))
            for (_, told), values in zip(self._asked, samples, strict=True)
        ]


def _said(own: Key, other: Key) -> str:
    """Two matrices in words, by what they differ in and then by what they share."""
    apart = [(a, b) for a, b in zip(own, other, strict=True) if a != b]
    same = [a for a, b in zip(own, other, strict=True) if a == b]
    return " and ".join(" ".join(side) for side in zip(*apart, strict=True)) + (
        f" ({', '.join(same)})" if same else ""
    )
