"""What gates did while they were trained, kept in one file that needs no torch to read.

AutoAttention, §5.3, Fig. 5.

For every step: how many gates were open, closed and reopened. At chosen steps: the value and the
state of every gate.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from headcount.base.arrays import read_npz
from headcount.base.errors import HeadcountError, NotFoundError, UsageError
from headcount.base.files import parse_json, whole
from headcount.base.header import header
from headcount.base.text import line, short
from headcount.heads import Layout

FILE = "gates.npz"


@dataclass(eq=False)
class Trace:
    """A run's gates over time."""

    layout: Layout
    about: dict[str, Any] = field(default_factory=dict)
    """Method, settings, and how the final number of heads came about."""
    steps: list[int] = field(default_factory=list)
    """Steps at which every gate was noted; 0 is before the first."""
    values: list[np.ndarray] = field(default_factory=list)
    """(head,) what is trained, for each of `steps`."""
    states: list[np.ndarray] = field(default_factory=list)
    """(head,) whether each gate was open, for each of `steps`."""
    opened: list[int] = field(default_factory=list)
    """Open gates after every step."""
    closings: list[int] = field(default_factory=list)
    """Gates that closed in every step."""
    reopenings: list[int] = field(default_factory=list)
    """Gates that opened again in every step."""
    ever: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    """(head,) whether a gate reopened at any time."""
    scores: list[dict[str, float]] = field(default_factory=list)
    """Loss and score curves by step: points of training with their `loss`, and where scores were
    measured points with `score`, of `n` rows, and the `open` gates of that moment."""

    def __repr__(self) -> str:
        left = f"; {self.opened[-1]} open at the end" if self.opened else ""
        took = f"{len(self.opened)} steps, {len(self.steps)} noted"
        return line(f"Trace({len(self.layout)} gates over {took}{left})")

    def note(self, step: int, values: np.ndarray, state: np.ndarray) -> None:
        """Every gate at this step."""
        if not self.steps or self.steps[-1] != step:
            self.steps.append(step)
            self.values.append(values.astype(np.float32))
            self.states.append(state.astype(bool))

    def count(self, before: np.ndarray, after: np.ndarray) -> None:
        """One step more, from one state to the next."""
        again = after & ~before
        if not len(self.ever):
            self.ever = np.zeros(len(after), dtype=bool)
        self.ever |= again
        self.opened.append(int(after.sum()))
        self.closings.append(int((before & ~after).sum()))
        self.reopenings.append(int(again.sum()))

    def add_losses(self, points: Iterable[Mapping[str, float]]) -> None:
        """The training's own curve, put between the scores in the order of the steps."""
        every = [*(dict(point) for point in points), *self.scores]
        self.scores = sorted(every, key=lambda point: point["step"])

    def left(self) -> dict[str, np.ndarray]:
        """Stack -> (noted step, layer): heads left per layer."""
        states = np.array(self.states, dtype=bool).reshape(len(self.states), len(self.layout))
        left, start = {}, 0
        for stack in self.layout.stacks:
            columns = []
            for heads in stack.heads:
                columns.append(states[:, start : start + heads].sum(1))
                start += heads
            left[stack.name] = np.stack(columns, 1)
        return left

    def summary(self) -> dict[str, Any]:
        """For the record: gates closed, reopened, and reopened ones that stayed."""
        last = self.states[-1] if self.states else np.zeros(len(self.layout), dtype=bool)
        ever = self.ever if len(self.ever) else np.zeros(len(self.layout), dtype=bool)
        return {
            "closings": sum(self.closings),
            "reopenings": sum(self.reopenings),
            "gates_reopened": int(ever.sum()),
            "gates_reopened_and_kept": int((ever & last).sum()),
        }

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything as arrays; what is no array is JSON text."""
        heads = len(self.layout)
        text = header("gates") | {
            "layout": self.layout.to_json(),
            "about": self.about,
            "scores": self.scores,
        }
        return {
            "steps": np.array(self.steps, dtype=np.int64),
            "values": np.array(self.values, dtype=np.float32).reshape(-1, heads),
            "states": np.array(self.states, dtype=bool).reshape(-1, heads),
            "opened": np.array(self.opened, dtype=np.int64),
            "closings": np.array(self.closings, dtype=np.int64),
            "reopenings": np.array(self.reopenings, dtype=np.int64),
            "ever": self.ever,
            "said": np.array(json.dumps(text, default=str)),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Trace:
        """The trace that `to_arrays` gave."""
        text = parse_json(str(arrays["said"]), "its JSON part")
        layout = Layout.from_json(text["layout"])
        _require_shapes(arrays, len(layout))
        _require_points(text["scores"])
        return cls(
            layout=layout,
            about=dict(text["about"]),
            steps=arrays["steps"].tolist(),
            values=list(arrays["values"].astype(np.float32)),
            states=list(arrays["states"].astype(bool)),
            opened=arrays["opened"].tolist(),
            closings=arrays["closings"].tolist(),
            reopenings=arrays["reopenings"].tolist(),
            ever=arrays["ever"].astype(bool),
            scores=text["scores"],
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it as .npz, whole or not at all."""
        with whole(path) as partial:
            np.savez_compressed(partial, **self.to_arrays())  # pyright: ignore[reportArgumentType]
        return Path(path)


def load_trace(path: str | os.PathLike[str]) -> Trace:
    """The trace in a file, or in the folder of a run."""
    path = Path(path)
    path = path / FILE if path.is_dir() else path
    if not path.is_file():
        raise NotFoundError(f"There is no trace of gates at {path}.")
    arrays = read_npz(path, "trace of gates")
    try:
        return Trace.from_arrays(arrays)
    except (ValueError, KeyError, TypeError, HeadcountError) as error:
        raise UsageError(f"{path} is not a trace of gates: {error}.") from error


def _require_shapes(arrays: Mapping[str, np.ndarray], heads: int) -> None:
    """Refuse arrays that do not belong together."""
    noted, steps = arrays["steps"].shape, arrays["opened"].shape
    expected = {
        "steps": (noted[:1], "iu"),
        "values": ((*noted[:1], heads), "f"),
        "states": ((*noted[:1], heads), "b"),
        "opened": (steps[:1], "iu"),
        "closings": (steps[:1], "iu"),
        "reopenings": (steps[:1], "iu"),
        "ever": ((heads if arrays["ever"].size else 0,), "b"),
    }
    for name, (shape, kinds) in expected.items():
        array = arrays[name]
        if len(shape) < 1 or array.shape != shape or array.dtype.kind not in kinds:
            raise ValueError(f"'{name}' has another shape or type than the layout asks for")


def _require_points(points: object) -> None:
    if not isinstance(points, list):
        raise ValueError(f"{short(points)} are no points of a curve")
    for point in points:
        numbers = {} if not isinstance(point, dict) else point
        if type(numbers.get("step")) not in (int, float) or not all(
            value is None or isinstance(value, int | float) for value in numbers.values()
        ):
            raise ValueError(f"{short(point)} is no point of a curve")
