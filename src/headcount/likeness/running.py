"""A running mean and standard error of matrices, and the file an interrupted run goes on from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headcount.base.errors import UsageError
from headcount.base.files import whole
from headcount.likeness.result import (
    DAMAGED,
    VERSION,
    Key,
    Matrix,
    Measurement,
    matrix,
    read_arrays,
)
from headcount.models.fingerprint import differences

FORMAT = "headcount redundancy, unfinished"


class RunningMoments:
    """Welford's mean and sum of squared deviations, one pair of matrices per (stack, distance)."""

    def __init__(self) -> None:
        self.count = 0
        self.means: dict[Key, Matrix] = {}
        self.squares: dict[Key, Matrix] = {}

    def add(self, matrices: Mapping[Key, NDArray[np.floating]]) -> None:
        """Take in the matrices of one more input."""
        if self.count and matrices.keys() != self.means.keys():
            raise UsageError(
                f"Input {self.count + 1} reached other stacks ({_stacks(matrices)}) than those "
                f"before ({_stacks(self.means)})."
            )
        self.count += 1
        for key, values in matrices.items():
            if key not in self.means:
                self.means[key] = np.zeros(values.shape)
                self.squares[key] = np.zeros(values.shape)
            step = values - self.means[key]
            self.means[key] += step / self.count
            step *= values - self.means[key]
            self.squares[key] += step

    def measured(self) -> dict[Key, Measurement]:
        """Means and their standard errors; the errors are NaN until there are two inputs."""
        return {key: Measurement(mean, self.error(key)) for key, mean in self.means.items()}

    def error(self, key: Key) -> Matrix:
        """The standard error of one mean matrix."""
        if self.count < 2:
            return np.full_like(self.means[key], np.nan)
        return np.sqrt(self.squares[key] / (self.count - 1) / self.count)

    def largest_error(self) -> float:
        """The largest standard error of all pairs, infinite until it is known."""
        if self.count < 2:
            return float("inf")
        most = max(float(squares.max()) for squares in self.squares.values())
        return (most / (self.count - 1) / self.count) ** 0.5


def save_state(
    path: Path, running: RunningMoments, settings: Mapping[str, object], digest: str
) -> None:
    """Write what a run has so far, whole or not at all."""
    about = {
        "format": FORMAT,
        "version": VERSION,
        "settings": dict(settings),
        "digest": digest,
        "count": running.count,
        "matrices": [list(key) for key in running.means],
    }
    arrays = {"about": np.array(json.dumps(about))}
    for (stack, name), mean in running.means.items():
        arrays[f"{stack}/{name}/mean"] = mean
        arrays[f"{stack}/{name}/squares"] = running.squares[stack, name]
    with whole(path) as partial, partial.open("wb") as file:
        np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]


def load_state(path: Path, settings: Mapping[str, object]) -> tuple[RunningMoments, str]:
    """What an interrupted run left, and its digest of the inputs; refuse another run's state."""
    about, arrays = read_arrays(path, FORMAT, "unfinished redundancy run")
    if not isinstance(then := about.get("settings"), dict):
        raise UsageError(f"{path} is no unfinished redundancy run: it has no settings.")
    if changes := differences(then, settings):
        raise UsageError(
            f"The unfinished run in '{path}' has other settings: {changes}. Repeat it with its "
            "own settings, or delete the file to start anew."
        )
    running = RunningMoments()
    try:
        running.count = int(about["count"])
        for stack, name in about["matrices"]:
            running.means[stack, name] = matrix(arrays, f"{stack}/{name}/mean")
            running.squares[stack, name] = matrix(arrays, f"{stack}/{name}/squares")
        if running.count < 1 or not running.means:
            raise ValueError("there is nothing in it")
        return running, str(about["digest"])
    except DAMAGED as error:
        raise UsageError(
            f"The unfinished run in '{path}' is damaged: {error}. Delete it to start anew."
        ) from error


def _stacks(keys: Iterable[Key]) -> str:
    return ", ".join(dict.fromkeys(stack for stack, _ in keys))
