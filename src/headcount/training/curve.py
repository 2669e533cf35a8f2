"""The learning curve: one JSON object per line, written as training goes.

The loss that was summed up since the last line goes into every checkpoint, so a run that was killed
and resumed leaves the same lines as one that was not.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from headcount.base.errors import UsageError
from headcount.base.files import (
    append_line,
    read_json,
    read_lines,
    require_fields,
    whole,
    write_json,
)
from headcount.base.text import short

Point = dict[str, float]
FILE = "curve.jsonl"
PENDING = "loss.json"
"""In a checkpoint: the loss since the last line, in every process."""
KEPT = ("grad_norm", "learning_rate")
talk = logging.getLogger("headcount")


def read_curve(path: Path) -> list[Point]:
    """The points in a file; a last line that a kill cut short is left out, with a warning."""
    points, cut = read_lines(path, "learning curve")
    if cut:
        talk.warning("The last line of %s was cut short and is left out.", path)
    for number, point in enumerate(points, 1):
        complaint = f"{path} is no learning curve: line {number}"
        require_fields(point, {"step": float}, complaint)
        require_fields(point, dict.fromkeys(point, float | None), complaint)
    return points


def _read_pending(path: Path, processes: int, process: int) -> tuple[int, float]:
    """The step of the last line before a checkpoint, and one process's loss since then."""
    saved = read_json(path, "loss of a checkpoint")
    require_fields(saved, {"sums": list, "since": int}, f"{path} is no loss of a checkpoint")
    sums = saved["sums"]
    if not sums or not all(type(part) in (int, float) and abs(part) < 2**63 for part in sums):
        raise UsageError(f"{path} is no loss of a checkpoint: its sums are {short(sums)}.")
    return saved["since"], float(sums[process] if len(sums) == processes else sum(sums) / len(sums))


class LearningCurve(TrainerCallback):
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
        self.gather: Callable[[Tensor], Tensor] = lambda value: value
        """One number of every process, for all of them."""
        self._pending: Tensor = torch.zeros(())
        self._since = self._began = 0

    def add(self, loss: Tensor) -> None:
        """The loss of a step, or of a piece of one."""
        self._pending = self._pending + loss.detach()

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Take up the curve of a run that goes on, without what came after its checkpoint."""
        self._since = self._began = state.global_step
        self._pending = torch.zeros((), device=args.device)
        if self.path is not None and self.path.is_file():
            points = read_curve(self.path)
            self.points = [point for point in points if point["step"] <= state.global_step]
        if self.path is not None and state.is_world_process_zero:
            with whole(self.path) as partial:
                text = "".join(json.dumps(point) + "\n" for point in self.points)
                partial.write_text(text, encoding="utf-8")
        pending = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}" / PENDING
        if pending.is_file():
            self._since, loss = _read_pending(pending, args.world_size, args.process_index)
            self._pending = torch.tensor(loss, device=args.device)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float] | None = None,
        **_: object,
    ) -> None:
        """A point of the curve: the mean loss since the last one."""
        if logs is None or "loss" not in logs:
            return
        total = self.gather(self._pending).mean().item()
        numbers = {"loss": total / (state.global_step - self._since)}
        numbers |= {name: float(logs[name]) for name in KEPT if name in logs}
        self._since, self._pending = state.global_step, torch.zeros_like(self._pending)
        self._add(state, numbers)

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Scores after an epoch, unless the run went on from its very end."""
        if self.score is None or not state.is_world_process_zero:
            return
        if state.global_step > self._began:
            self._add(state, self.score())

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Put the loss that has no line yet beside the checkpoint."""
        sums = self.gather(self._pending).reshape(-1).tolist()
        if state.is_world_process_zero:
            folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
            write_json(folder / PENDING, {"since": self._since, "sums": sums})

    def _add(self, state: TrainerState, numbers: Point) -> None:
        point = {"step": state.global_step, "epoch": round(state.epoch or 0.0, 4), **numbers}
        self.points.append(point)
        if state.is_world_process_zero:
            if self.path is not None:
                append_line(self.path, point)
            if self.report is not None:
                self.report(state.global_step, state.max_steps, point)
