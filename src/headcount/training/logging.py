"""Where runs are logged as they go: `hc.train(model, "sst2", logging=hc.Logging(log_to="wandb"))`.

It is no part of a run's identity: the same run with other trackers, or none, is the same run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec

from headcount.base.errors import MissingExtraError, UsageError
from headcount.base.names import require

TRACKERS = ("trackio", "wandb", "mlflow", "tensorboard")
"""What can be logged to: names of packages, and of transformers' `report_to`."""


@dataclass(frozen=True, kw_only=True)
class Logging:
    """Which trackers get losses, gates, scores and finished runs; none by default."""

    log_to: tuple[str, ...] = ()
    """Trackers to log to: trackio, wandb, mlflow, tensorboard; several may be named."""
    log_project: str = "headcount"
    """The project that the runs belong to (in MLflow: experiment)."""
    run: str | None = None
    """Name of the run; by default that of its folder, or its task."""

    def __post_init__(self) -> None:
        names = (self.log_to,) if isinstance(self.log_to, str) else tuple(self.log_to)
        object.__setattr__(self, "log_to", tuple(dict.fromkeys(names)))
        for name in self.log_to:
            require("tracker", name, TRACKERS)
        if not self.log_project.strip():
            raise UsageError("A project to log to has a name: leave out log_project, or name one.")
        if missing := [name for name in self.log_to if find_spec(name) is None]:
            raise MissingExtraError(
                f"To log to {' and '.join(missing)}, install it: pip install {' '.join(missing)}"
            )

    def __bool__(self) -> bool:
        return bool(self.log_to)

    def named(self, *words: object) -> Logging:
        """The same for a run of this name, after the name it is a part of."""
        parts = [self.run, *(str(word) for word in words if word is not None)]
        return replace(self, run=" ".join(part for part in parts if part))
