"""The statistics behind `redundancy_claims.py`: correlations, layer gaps and clusters, as rows.

Intervals (95 %) come from heads drawn anew, all matrices together, so that the smallest of many
correlations has an interval as well. A verdict is `holds` when the interval is on the claim's side
of the threshold, `does not` when it is on the other, else `undecided`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from scipy.stats import spearmanr

from headcount.likeness.agreement import mantel, pairs
from headcount.likeness.distances import SENTENCE_BASED, TOKEN_BASED
from headcount.likeness.layers import layer_clusters, layer_gap, layers_of
from headcount.likeness.result import Redundancy

KINDS = {
    "cola": "one sentence",
    "mrpc": "similarity",
    "stsb": "similarity",
    "rte": "inference",
    "wnli": "inference",
}
SEVEN = (*TOKEN_BASED, *SENTENCE_BASED)
Key = tuple[str, str, str]
"""(phase, inputs, distance)"""
Interval = tuple[float, float, float]
PHASES = ("pre-trained", "fine-tuned")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table."""

    claim: str
    what: str
    value: float
    low: float
    high: float
    threshold: str
    verdict: str
    note: str = ""

    @classmethod
    def of(
        cls, claim: str, what: str, value: Interval, threshold: str, verdict: str, note: str = ""
    ) -> Row:
        number, low, high = value
        return cls(
            claim=claim,
            what=what,
            value=number,
            low=float(low),
            high=float(high),
            threshold=threshold,
            verdict=verdict,
            note=note,
        )

    def markdown(self) -> str:
        interval = f"{self.low:.3f} – {self.high:.3f}"
        cells = (self.claim, self.what, f"{self.value:.3f}", interval, self.threshold)
        return "| " + " | ".join((*cells, self.verdict, self.note)) + " |"


Statistic = Callable[[np.ndarray, np.ndarray], float]
"""From correlations (matrix, matrix) and distances (matrix, pair of heads) to one number."""


class Drawn:
    """All matrices on one set of heads: statistics of them, with intervals from heads drawn."""

    def __init__(self, found: dict[tuple[str, str], Redundancy], draws: int, seed: int) -> None:
        self.keys = [(*key, name) for key in found for name in SEVEN]
        self.at = {key: place for place, key in enumerate(self.keys)}
        self.stacked = np.array([found[p, i][name].values for p, i, name in self.keys])
        self.draws, self.seed = draws, seed
        self.asked: dict[str, Statistic] = {}

    def inputs(self, phase: str) -> list[str]:
        return list(dict.fromkeys(name for p, name, _ in self.keys if p == phase))

    def places(self, which: list[tuple[Key, Key]]) -> tuple[np.ndarray, np.ndarray]:
        a, b = zip(*which, strict=True)
        return np.array([self.at[key] for key in a]), np.array([self.at[key] for key in b])

    def run(self) -> dict[str, Interval]:
        """name -> (value, low, high) of all that was asked."""
        heads = self.stacked.shape[1]
        rows, columns = np.triu_indices(heads, 1)
        rng = np.random.default_rng(self.seed)
        samples: dict[str, list[float]] = {name: [] for name in self.asked}
        for draw in range(self.draws + 1):
            chosen = rng.integers(0, heads, heads) if draw else np.arange(heads)
            i, j = chosen[rows], chosen[columns]
            flat = self.stacked[:, i[i != j], j[i != j]]  # a head drawn twice never meets itself
            r = np.corrcoef(flat)
            for name, statistic in self.asked.items():
                samples[name].append(float(statistic(r, flat)))
        return {
            name: (values[0], *np.quantile(values[1:], [0.025, 0.975]).tolist())
            for name, values in samples.items()
        }


def above(value: Interval, threshold: float) -> str:
    return "holds" if value[1] >= threshold else "does not" if value[2] < threshold else "undecided"


def below(value: Interval, threshold: float) -> str:
    return "holds" if value[2] <= threshold else "does not" if value[1] > threshold else "undecided"


def correlations(table: Drawn) -> list[Row]:
    """RA1, RA2, RA5, RA6 and RA7: all from correlations between matrices."""
    finish: list[Callable[[dict[str, Interval]], Row]] = []

    def smallest(claim: str, what: str, threshold: float, which: list[tuple[Key, Key]]) -> None:
        if not which:
            return
        a, b = table.places(which)
        name = f"{claim} {what}"
        table.asked[name] = lambda r, _: r[a, b].min()
        r = np.corrcoef([pairs(matrix) for matrix in table.stacked])
        worst = which[int(np.argmin(r[a, b]))]
        note = " with ".join(" ".join(key[1:]) for key in worst)
        finish.append(
            lambda found: Row.of(
                claim, what, found[name], f">= {threshold}", above(found[name], threshold), note
            )
        )

    for claim, group in (("RA1", TOKEN_BASED), ("RA2", SENTENCE_BASED)):
        for phase in PHASES:
            each = product(table.inputs(phase), combinations(group, 2))
            which = [((phase, name, a), (phase, name, b)) for name, (a, b) in each]
            smallest(claim, f"{phase}: smallest r among {', '.join(group)}", 0.7, which)
    for task in table.inputs("fine-tuned"):
        which = [(("pre-trained", task, d), ("fine-tuned", task, d)) for d in SEVEN]
        smallest("RA5", f"{task}: smallest r of pre-trained with fine-tuned", 0.9, which)
        finish.append(difference(table, task))
    for phase in PHASES:
        every = []
        for distance in SEVEN:
            two = combinations(table.inputs(phase), 2)
            which = [((phase, a, distance), (phase, b, distance)) for a, b in two]
            smallest("RA6", f"{phase}, {distance}: smallest r between inputs", 0.8, which)
            every += which
        smallest("RA6", f"{phase}, all distances: smallest r between inputs", 0.8, every)
        tasks = [pair for pair in every if all(key[1] in KINDS for key in pair)]
        smallest("RA6", f"{phase}, all distances: smallest r between tasks", 0.8, tasks)
    for distance in SEVEN:
        # the same lengths: what is left is that the words make sense
        which = [
            (("pre-trained", task, distance), ("random like", task, distance))
            for task in table.inputs("random like")
        ]
        what = f"{distance}: smallest r of a task with random tokens of its lengths"
        smallest("RA6", what, 0.8, which)
    for phase in PHASES:
        finish += kinds(table, phase)
    found = table.run()
    return sorted((make(found) for make in finish), key=lambda row: row.claim)


def difference(table: Drawn, task: str) -> Callable[[dict[str, Interval]], Row]:
    """RA5: the mean absolute difference, of the distance where it is largest."""
    a, b = table.places([(("pre-trained", task, d), ("fine-tuned", task, d)) for d in SEVEN])
    name = f"difference {task}"
    table.asked[name] = lambda _, flat: np.abs(flat[a] - flat[b]).mean(1).max()
    what = f"{task}: largest mean absolute difference"
    return lambda found: Row.of("RA5", what, found[name], "<= 0.05", below(found[name], 0.05))


def kinds(table: Drawn, phase: str) -> list[Callable[[dict[str, Interval]], Row]]:
    """RA7: correlations of tasks of one kind minus those of different kinds."""
    two = list(combinations([task for task in table.inputs(phase) if task in KINDS], 2))
    same = [pair for pair in two if KINDS[pair[0]] == KINDS[pair[1]]]
    every = [pair for pair in two if pair not in same]
    # CoLA alone has short single sentences: without it, kinds are less a matter of length
    pairs_only = [pair for pair in every if "cola" not in pair]
    out = []
    groups = [*((d, [d], every) for d in SEVEN), ("all distances", list(SEVEN), every)]
    groups.append(("all distances, without cola", list(SEVEN), pairs_only))
    for label, group, other in groups:
        if not same or not other:
            continue
        within = table.places([((phase, a, d), (phase, b, d)) for a, b in same for d in group])
        between = table.places([((phase, a, d), (phase, b, d)) for a, b in other for d in group])
        name = f"kinds {phase} {label}"
        table.asked[name] = lambda r, _, w=within, b=between: r[w].mean() - r[b].mean()

        def make(
            found: dict[str, Interval], name: str = name, label: str = label, n: int = len(other)
        ) -> Row:
            value = found[name]
            verdict = "holds" if value[1] > 0 else "does not" if value[2] <= 0 else "undecided"
            what = f"{phase}, {label}: mean r within kinds minus between"
            note = f"{len(same)} pairs of tasks within, {n} between"
            return Row.of("RA7", what, value, "> 0", verdict, note)

        out.append(make)
    return out


def where(
    found: dict[tuple[str, str], Redundancy], draws: int, seed: int, permutations: int = 1999
) -> list[Row]:
    """RA3 and RA4, on the mean of each distance's matrices over all inputs of a phase."""
    rows = []
    rng = np.random.default_rng(seed)
    for phase in PHASES:
        values = [value for (p, _), value in found.items() if p == phase]
        if not values:
            continue
        layers = layers_of(values[0].layout, "encoder")
        for name in SEVEN:
            each = [value[name].values for value in values]
            mean = np.mean(each, axis=0)
            rows.append(gap_row(phase, name, mean, layers, draws, permutations, rng))
            if name in TOKEN_BASED:
                rows.append(cluster_row(phase, name, mean, each, layers, draws, rng))
    return sorted(rows, key=lambda row: row.claim)


def gap_row(
    phase: str,
    name: str,
    matrix: np.ndarray,
    layers: np.ndarray,
    draws: int,
    permutations: int,
    rng: np.random.Generator,
) -> Row:
    gap = layer_gap(matrix, layers, permutations=permutations)
    r, p = mantel(np.abs(layers[:, None] - layers), matrix, permutations=permutations)
    drawn = [gap_correlation(matrix, layers, rng) for _ in range(draws)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    holds = gap.spearman > 0 and gap.p_value < 0.01
    verdict = "holds" if holds else "does not" if high <= 0 else "undecided"
    note = f"p {gap.p_value:.4f}; over pairs of heads r {r:.3f}, Mantel p {p:.4f}"
    what = f"{phase}, {name}: Spearman of layer gap and mean distance"
    return Row.of("RA3", what, (gap.spearman, low, high), "> 0, p < 0.01", verdict, note)


def gap_correlation(matrix: np.ndarray, layers: np.ndarray, rng: np.random.Generator) -> float:
    """Spearman of layer gap and mean distance on heads drawn anew; none meets itself."""
    heads = rng.integers(0, len(layers), len(layers))
    i, j = (heads[side] for side in np.triu_indices(len(heads), 1))
    i, j = i[i != j], j[i != j]
    gaps, place, counts = np.unique(
        np.abs(layers[i] - layers[j]), return_inverse=True, return_counts=True
    )
    return float(spearmanr(gaps, np.bincount(place, matrix[i, j]) / counts).statistic)


def cluster_row(
    phase: str,
    name: str,
    matrix: np.ndarray,
    each: list[np.ndarray],
    layers: np.ndarray,
    draws: int,
    rng: np.random.Generator,
) -> Row:
    found = layer_clusters(matrix, layers)
    runs = sum(layer_clusters(one, layers).contiguous for one in each)
    drawn = []
    for _ in range(draws):
        # heads anew within each layer, so that no layer is lost
        heads = np.concatenate(
            [rng.choice(np.flatnonzero(layers == n), sum(layers == n)) for n in np.unique(layers)]
        )
        again = layer_clusters(matrix[np.ix_(heads, heads)], layers)
        drawn.append(again.adjusted_rand)
    low, high = np.quantile(drawn, [0.025, 0.975])
    value = (found.adjusted_rand, float(low), float(high))
    verdict = above(value, 0.8) if found.contiguous else "does not"
    labels = "".join(map(str, found.labels))
    note = f"clusters {labels}, contiguous on {runs} of {len(each)} inputs"
    what = f"{phase}, {name}: adjusted Rand with the best cut into runs"
    return Row.of("RA4", what, value, ">= 0.8, contiguous", verdict, note)
