"""What `hc.redundancy` gives: H x H distances with their standard errors, in one value and file.

R["js"].values                   # (head, head), for a model with one stack
R["js", "cross"].stderr          # with several stacks, the stack comes second
R.matrices("js")                 # stack -> (head, head), as clustering takes it
R.save("js.npz");  R = hc.load_redundancy("js.npz")
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headcount.base import html
from headcount.base.arrays import read_npz
from headcount.base.errors import HeadcountError, NotFoundError, UsageError
from headcount.base.files import as_path, parse_json, whole
from headcount.base.names import unknown
from headcount.base.text import line, short
from headcount.heads import Head, Layout

Matrix = NDArray[np.float64]
Key = tuple[str, str]
"""(stack, distance)"""

FORMAT = "headcount redundancy"
VERSION = 1


class Measurement(NamedTuple):
    """One distance between the heads of one stack."""

    values: Matrix  # (head, head)
    stderr: Matrix
    """Standard error of each mean; NaN after a single input."""

    def __repr__(self) -> str:
        heads = len(self.values)
        return f"Measurement({heads} x {heads}; mean {summary(self)['mean']:.4g})"


@dataclass(frozen=True, kw_only=True, eq=False)
class Redundancy:
    """Mean distances between a model's heads over inputs, and how they were made."""

    layout: Layout
    measured: Mapping[Key, Measurement]
    """(stack, distance) -> values and standard errors, heads in the order of the layout."""
    count: int
    """Inputs behind the means."""
    provenance: Mapping[str, Any]
    """Model, inputs, settings and versions, as plain values."""

    def __post_init__(self) -> None:
        if not self.measured:
            raise UsageError("A redundancy value holds at least one matrix.")
        for (stack, name), measurement in self.measured.items():
            heads = self.layout[stack].total
            for array in measurement:
                if array.shape != (heads, heads):
                    raise UsageError(
                        f"The {stack} matrix of '{name}' has the shape {array.shape}; the model "
                        f"has {heads} heads there."
                    )
                array.setflags(write=False)

    @property
    def distances(self) -> tuple[str, ...]:
        """The distances that were measured."""
        return tuple(dict.fromkeys(name for _, name in self.measured))

    @property
    def stacks(self) -> tuple[str, ...]:
        """The stacks that were measured: those with at least two heads."""
        return tuple(dict.fromkeys(stack for stack, _ in self.measured))

    def __getitem__(self, key: str | tuple[str, str]) -> Measurement:
        name, stack = (key, None) if isinstance(key, str) else key
        if name not in self.distances:
            says = f"The distance '{name}' was not measured"
            raise unknown(says, name, self.distances, has="Measured")
        if stack is None and len(self.stacks) > 1:
            raise UsageError(
                f"This model has several stacks ({', '.join(self.stacks)}): write "
                f"R['{name}', '{self.stacks[0]}']."
            )
        stack = stack or next(iter(self.stacks))
        if stack not in self.stacks:
            raise UsageError(
                f"The {stack} heads were not measured. Measured: {', '.join(self.stacks)}."
            )
        return self.measured[stack, name]

    def matrices(self, names: str | Iterable[str] | None = None) -> dict[str, Matrix]:
        """stack -> (head, head): one distance, or the mean of several (of all by default)."""
        if names is None:
            names = self.distances
        names = [names] if isinstance(names, str) else list(names)
        if not names:
            raise UsageError("Name at least one distance.")
        return {
            stack: np.mean([self[name, stack].values for name in names], axis=0)
            for stack in self.stacks
        }

    def heads(self, stack: str) -> list[Head]:
        """The heads of a stack in the order of its matrices, with the original's numbers."""
        return [self.layout.original(head) for head in self.layout if head.stack == stack]

    @property
    def largest_error(self) -> float:
        """The largest standard error of all pairs; NaN after a single input."""
        return max(float(measurement.stderr.max()) for measurement in self.measured.values())

    def __repr__(self) -> str:
        names = ", ".join(self.distances)
        end = f"{self.count} inputs; largest standard error {self.largest_error:.2g})"
        brief = f"Redundancy({names}; {len(self.layout)} heads; {end}"
        return line(f"Redundancy({names}; {self.layout}; {end}", brief)

    def _repr_html_(self) -> str:
        columns = ["stack", "distance", "mean", "smallest", "largest", "largest standard error"]
        rows = [
            (*key, *summary(measurement).values()) for key, measurement in self.measured.items()
        ]
        nearest = self._nearest()
        known = [distance for _, distance in nearest.values()]
        shades = dict(zip(nearest, html.scaled([-distance for distance in known]), strict=True))
        return html.table(columns, rows, title=repr(self)) + html.grid(
            f"The darker, the nearer its nearest head (mean of {', '.join(self.distances)})",
            self.layout,
            shades.get,
            lambda head: "{}, {:.3g} away".format(*nearest[head]) if head in nearest else "alone",
        )

    def _nearest(self) -> dict[Head, tuple[Head, float]]:
        """head -> the head nearest to it, by its number in the original, and how far it is."""
        nearest: dict[Head, tuple[Head, float]] = {}
        for stack, matrix in self.matrices().items():
            apart = matrix + np.diag(np.full(len(matrix), np.inf))
            names = self.heads(stack)
            heads = [head for head in self.layout if head.stack == stack]
            for head, row in zip(heads, apart, strict=True):
                if len(heads) > 1:
                    nearest[head] = names[int(row.argmin())], float(row.min())
        return nearest

    def to_json(self) -> dict[str, Any]:
        """How it was made and a summary of each matrix; the matrices are in the file."""
        return {
            "layout": self.layout.to_json(),
            "count": self.count,
            "provenance": dict(self.provenance),
            "summary": [
                {"stack": stack, "distance": name, **summary(measurement)}
                for (stack, name), measurement in self.measured.items()
            ],
        }

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write one file, whole or not at all: arrays, and JSON of how they were made."""
        about = {
            "format": FORMAT,
            "version": VERSION,
            "layout": self.layout.to_json(),
            "count": self.count,
            "provenance": dict(self.provenance),
            "matrices": [list(key) for key in self.measured],
        }
        arrays = {"about": np.array(json.dumps(about, ensure_ascii=False))}
        for (stack, name), measurement in self.measured.items():
            arrays[f"{stack}/{name}/values"] = measurement.values
            arrays[f"{stack}/{name}/stderr"] = measurement.stderr
        with whole(path) as partial, partial.open("wb") as file:
            np.savez_compressed(file, **arrays)  # pyright: ignore[reportArgumentType]
        return Path(path)


def summary(measured: Measurement) -> dict[str, float]:
    """Mean, extremes and largest standard error over pairs of different heads."""
    upper = np.triu_indices(len(measured.values), 1)
    pairs = measured.values[upper]
    if not len(pairs):  # a single head has no other
        return dict.fromkeys(("mean", "smallest", "largest", "largest_error"), float("nan"))
    return {
        "mean": float(pairs.mean()),
        "smallest": float(pairs.min()),
        "largest": float(pairs.max()),
        "largest_error": float(measured.stderr[upper].max()),
    }


def load_redundancy(path: str | os.PathLike[str]) -> Redundancy:
    """The value that `Redundancy.save` wrote; nothing in the file is ever run."""
    about, arrays = read_arrays(as_path(path, "redundancy file"), FORMAT, "redundancy file")
    try:
        measured = {
            (stack, name): Measurement(
                matrix(arrays, f"{stack}/{name}/values"),
                matrix(arrays, f"{stack}/{name}/stderr", finite=False),
            )
            for stack, name in about["matrices"]
        }
        return Redundancy(
            layout=Layout.from_json(about["layout"]),
            measured=measured,
            count=int(about["count"]),
            # the packed records of docs/reproduction have the first name
            provenance=dict(about["made"] if "made" in about else about["provenance"]),
        )
    except DAMAGED as error:
        raise UsageError(f"The redundancy file '{path}' is damaged: {error}.") from error


def load_several(files: Sequence[Path]) -> dict[str, Redundancy]:
    """What several files hold, by short names where these tell them apart, by paths where not."""
    if len(set(files)) != len(files):
        raise UsageError("A file is named twice.")
    short = len({path.stem for path in files}) == len(files)
    return {(path.stem if short else str(path)): load_redundancy(path) for path in files}


DAMAGED = (KeyError, TypeError, ValueError, OverflowError, HeadcountError)


def matrix(arrays: Mapping[str, np.ndarray], name: str, *, finite: bool = True) -> Matrix:
    """One matrix of a file: heads by heads, of numbers."""
    values = arrays[name]
    square = values.ndim == 2 and values.shape[0] == values.shape[1] > 0
    if not square or values.dtype.kind not in "fiu":
        raise ValueError(f"{short(name)} is no matrix of numbers")
    if finite and not np.isfinite(values).all():
        raise ValueError(f"{short(name)} has values that are no numbers")
    return values.astype(np.float64)


def read_arrays(
    path: str | os.PathLike[str], format_: str, what: str
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What was saved about the arrays of a file, and the arrays; refuse any other file."""
    if not Path(path).is_file():
        raise NotFoundError(f"There is no file '{path}'.")
    arrays = read_npz(path, what)
    try:
        about = parse_json(str(arrays.pop("about")), f"{path} is no {what}")
    except (KeyError, ValueError) as error:
        raise UsageError(f"{path} is no {what}: it does not say how it was made.") from error
    if not isinstance(about, dict) or about.get("format") != format_:
        raise UsageError(f"{path} is no {what}.")
    if about.get("version") != VERSION:
        raise UsageError(
            f"'{path}' was written by another version of headcount (format "
            f"{short(about.get('version'))}, this one reads {VERSION})."
        )
    return about, arrays
