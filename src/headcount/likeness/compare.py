"""What several redundancy values say together: do distances, tasks and phases agree?

On Attention Redundancy (NAACL 2021), §5 to §7.

comparison = compare({"cola": a, "random": b})
comparison.between_files[0].agreement.pearson
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations

import numpy as np

from headcount.base.errors import UsageError
from headcount.base.text import line
from headcount.likeness.agreement import Agreement, agree
from headcount.likeness.layers import LayerClusters, LayerGap, layer_clusters, layer_gap, layers_of
from headcount.likeness.result import Matrix, Redundancy

Job = Callable[[], "Pair | LayerStructure"]
NamedPair = tuple[dict[str, str], Matrix, Matrix]
"""What two matrices are, and the two."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """How two matrices agree: two distances of one file, or one distance in two files."""

    stack: str
    within: str
    """The file both are from, or the distance both are of."""
    one: str
    other: str
    agreement: Agreement

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        names = {"stack": self.stack, "within": self.within, "one": self.one, "other": self.other}
        return {**names, **asdict(self.agreement)}


@dataclass(frozen=True, kw_only=True)
class LayerStructure:
    """Where the redundancy of one matrix is: layer gap and clusters of layers."""

    file: str
    stack: str
    distance: str
    gap: LayerGap | None
    """None for fewer than three layers."""
    clusters: LayerClusters

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return {
            "file": self.file,
            "stack": self.stack,
            "distance": self.distance,
            "layer_gap": None if self.gap is None else asdict(self.gap),
            "layer_clusters": asdict(self.clusters),
        }


@dataclass(frozen=True, kw_only=True)
class MatrixComparison:
    """Everything `headcount redundancy compare` shows."""

    files: tuple[str, ...]
    between_distances: tuple[Pair, ...]
    between_files: tuple[Pair, ...]
    where: tuple[LayerStructure, ...]

    def __repr__(self) -> str:
        pairs = f"{len(self.between_distances)} pairs of distances"
        files = f"{len(self.between_files)} pairs of files"
        return line(f"MatrixComparison({pairs}, {files}: {', '.join(self.files)})")

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return {
            "files": list(self.files),
            "between_distances": [pair.to_json() for pair in self.between_distances],
            "between_files": [pair.to_json() for pair in self.between_files],
            "where": [matrix.to_json() for matrix in self.where],
        }


def compare(
    values: Mapping[str, Redundancy],
    *,
    clusters: int = 3,
    permutations: int = 999,
    seed: int = 0,
    track: Callable[[list[Job]], Iterable[Job]] = iter,
) -> MatrixComparison:
    """Agreement between distances and between files, distance against layer gap, layer clusters.

    `track` goes over the steps of the work, and may show how far it is.
    """
    refuse_other_models(values)

    def pair(names: dict[str, str], one: Matrix, other: Matrix) -> Pair:
        return Pair(**names, agreement=agree(one, other, permutations=permutations, seed=seed))

    def where(file: str, stack: str, name: str) -> LayerStructure:
        matrix = values[file][name, stack].values
        layers = layers_of(values[file].layout, stack)
        count = len(np.unique(layers))
        gap = layer_gap(matrix, layers, permutations=permutations, seed=seed) if count > 2 else None
        groups = layer_clusters(matrix, layers, min(clusters, count))
        return LayerStructure(file=file, stack=stack, distance=name, gap=gap, clusters=groups)

    first = [partial(pair, *two) for two in _distances(values)]
    second = [partial(pair, *two) for two in _files(values)]
    third = [
        partial(where, file, stack, name)
        for file, value in values.items()
        for stack, name in value.measured
    ]
    done = [job() for job in track([*first, *second, *third])]
    pairs = [result for result in done if isinstance(result, Pair)]
    return MatrixComparison(
        files=tuple(values),
        between_distances=tuple(pairs[: len(first)]),
        between_files=tuple(pairs[len(first) :]),
        where=tuple(result for result in done if isinstance(result, LayerStructure)),
    )


def refuse_other_models(values: Mapping[str, Redundancy]) -> None:
    """Refuse to compare matrices whose heads are not the same."""
    if not values:
        raise UsageError("Name at least one redundancy file.")
    (first, one), *others = values.items()
    for name, other in others:
        if _heads(one) != _heads(other):
            raise UsageError(
                f"'{first}' and '{name}' are of different models: {one.layout} and {other.layout}."
            )


def _heads(value: Redundancy) -> list[tuple[str, tuple[int, ...]]]:
    return [(stack.name, stack.heads) for stack in value.layout.stacks]


def _distances(values: Mapping[str, Redundancy]) -> Iterator[NamedPair]:
    """Every two distances of a file."""
    for file, value in values.items():
        for stack in value.stacks:
            for one, other in combinations(value.distances, 2):
                names = {"stack": stack, "within": file, "one": one, "other": other}
                yield names, value[one, stack].values, value[other, stack].values


def _files(values: Mapping[str, Redundancy]) -> Iterator[NamedPair]:
    """Every two files that have a distance of the same stack."""
    keys = dict.fromkeys(key for value in values.values() for key in value.measured)
    for stack, name in keys:
        files = [file for file, value in values.items() if (stack, name) in value.measured]
        for one, other in combinations(files, 2):
            names = {"stack": stack, "within": name, "one": one, "other": other}
            yield names, values[one][name, stack].values, values[other][name, stack].values
