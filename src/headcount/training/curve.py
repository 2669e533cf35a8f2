"""The learning curve: one JSON object per line, written as training goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

Point = dict[str, float]
KEPT = ("loss", "grad_norm", "learning_rate")


class Curve(TrainerCallback):
    """Collects losses, and scores after every epoch; writes them to a file when there is one."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        score: Callable[[], Point] | None = None,
        report: Callable[[int, int, Point], None] | None = None,
    ) -> None:
        self.path = path
        self.score = score
        """Called after every epoch; its numbers join the curve."""
        self.report = report
        """Called with (step, all steps, newest point)."""
        self.points: list[Point] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Take up the curve of a run that goes on, without what came after its checkpoint."""
        if self.path is not None and self.path.is_file():
            lines = self.path.read_text(encoding="utf-8").splitlines()
            points = [json.loads(line) for line in lines if line.endswith("}")]
            self.points = [point for point in points if point["step"] <= state.global_step]
        if state.is_world_process_zero:
            self._write()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """A point of the curve."""
        numbers = {name: float(logs[name]) for name in KEPT if name in (logs or {})}
        if "loss" in numbers:
            self._add(state, numbers)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Scores after an epoch."""
        if self.score is not None and state.is_world_process_zero:
            self._add(state, self.score())

    def _add(self, state: Any, numbers: Point) -> None:
        point = {"step": state.global_step, "epoch": round(state.epoch or 0.0, 4), **numbers}
        self.points.append(point)
        if state.is_world_process_zero:
            if self.path is not None:
                with self.path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(point) + "\n")
            if self.report is not None:
                self.report(state.global_step, state.max_steps, point)

    def _write(self) -> None:
        if self.path is not None:
            text = "".join(json.dumps(point) + "\n" for point in self.points)
            self.path.write_text(text, encoding="utf-8")
