"""What a method that trains is given besides its own options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headcount.tasks.task import Task
from headcount.training.logging import Logging
from headcount.training.options import TrainOptions


@dataclass(frozen=True, kw_only=True)
class TrainingInputs:
    """A task to train on, and how."""

    task: Task
    tokenizer: Any
    options: TrainOptions
    """How the weights are trained beside the gates."""
    device: str = "auto"
    work: Path | None = None
    """A folder in which a run can be resumed; None keeps nothing."""
    report: Callable[..., None] | None = None
    """Called with (step, all steps, newest point of the learning curve)."""
    logging: Logging = field(default_factory=Logging)
    """Which trackers are told."""
