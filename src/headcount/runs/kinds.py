"""What can be asked of a model beside a cut: the options of every other kind of run.

Nothing here needs torch. A kind's options are those of the functions that do the work, put
together; a file of `runs/carriers/` hands them on. `seeded` names the part of a kind's options that
draws with the seed of the run: see `Run.seed`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from headcount.base.errors import UsageError
from headcount.base.options import by_field
from headcount.behaviour.options import RoleOptions
from headcount.changes.options import DriftOptions
from headcount.costs.shapes import SEVERAL, check_rounds, check_timing, shapes_of, unlisted
from headcount.likeness.options import DistanceOptions
from headcount.runs.contents import FILE
from headcount.sensitivity.options import GradientOptions
from headcount.tasks.input_options import InputOptions
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring


@dataclass(frozen=True, kw_only=True)
class Train:
    """Train a model on a task's train split, and score it on its dev split."""

    seeded: ClassVar = "training"

    training: TrainOptions = field(default_factory=TrainOptions)
    """How it is trained."""
    rows: int | None = None
    """Train on a seeded sample of so many rows."""
    fraction: float | None = None
    """Train on this share of the rows."""
    from_scratch: bool = False
    """Start from random weights; only the model's config is used."""
    new_tokenizer: int | None = None
    """Make a tokenizer of so many tokens from the training texts (with from_scratch)."""
    curve_scores: bool = False
    """Score the dev split after every epoch."""

    def __post_init__(self) -> None:
        if self.new_tokenizer is not None and not self.from_scratch:
            raise UsageError("--new-tokenizer goes with --from-scratch, and without --tokenizer.")
        if self.rows is not None and self.fraction is not None:
            raise UsageError("Pass --rows or --fraction, not both.")
        if self.fraction is not None and not 0 < self.fraction <= 1:
            raise UsageError(f"A share of the rows is above 0 and at most 1, not {self.fraction}.")
        if self.rows is not None and self.rows < 1:
            raise UsageError(f"A number of rows is at least 1, not {self.rows}.")

    @property
    def sample(self) -> int | float | None:
        """How many of the rows are trained on; None is all."""
        return self.rows if self.fraction is None else self.fraction


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Score a model on a task, with all heads and with masks."""

    seeded: ClassVar = "scoring"

    scoring: Scoring = field(default_factory=Scoring)
    """What is scored."""
    masks: tuple[str, ...] = field(default=(), metadata=FILE)
    """Heads that stay, as 777322, 6x12, JSON or mask.json."""
    tokens: int | None = None
    """Tokens per batch; as suits the device when left out."""
    beams: int = 1
    """Translations kept while translating."""


@dataclass(frozen=True, kw_only=True)
class ImportanceOptions:
    """How much a task's loss feels each head."""

    seeded: ClassVar = "gradient_options"

    gradient_options: GradientOptions = field(default_factory=GradientOptions)
    """Which rows, and what becomes of the scores."""
    keep: str | None = field(default=None, metadata=FILE)
    """Heads that stay while it is measured; all if left out."""


@dataclass(frozen=True, kw_only=True)
class RedundancyOptions:
    """A distance for every pair of heads."""

    seeded: ClassVar = "input_options"

    input_options: InputOptions = field(default_factory=InputOptions)
    """What the model reads."""
    distance_options: DistanceOptions = field(default_factory=DistanceOptions)
    """Which distances."""


@dataclass(frozen=True, kw_only=True)
class RolesOptions:
    """What every head does on data."""

    seeded: ClassVar = "input_options"

    input_options: InputOptions = field(default_factory=InputOptions)
    """What the model reads."""
    role_options: RoleOptions = field(default_factory=RoleOptions)
    """What is measured beside roles."""
    pruned: str | None = field(default=None, metadata=FILE)
    """The same model with heads removed: where its heads look in the examples."""


@dataclass(frozen=True, kw_only=True)
class TransferOptions:
    """What fine-tuning changed, head by head; the run's model is the first of the two."""

    seeded: ClassVar = "input_options"

    finetuned: str = field(metadata=FILE)
    """The second model, of the same architecture."""
    input_options: InputOptions = field(default_factory=InputOptions)
    """What both read."""
    drift_options: DriftOptions = field(default_factory=DriftOptions)
    """What is asked beside their drift."""


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """Time one forward pass: dense, masked, with heads removed, and in onnxruntime."""

    pruned: str | None = field(default=None, metadata=FILE)
    """The same model with heads removed."""
    ratio: tuple[float, ...] | None = None
    """Shares of the heads to remove when no pruned model is given: 0.5 0.75 0.9."""
    batch: int | tuple[int, ...] = field(default=8, metadata=SEVERAL)
    """Examples in a forward pass; of several numbers each is timed."""
    length: int | tuple[int, ...] | None = field(default=None, metadata=SEVERAL)
    """Tokens of each example; of several numbers each is timed; 128, or what fits."""
    repeats: int = 15
    """Rounds at least; 6 or more."""
    timing_seconds: float = 30.0
    """More rounds until the intervals are within ± 10 %, for so many seconds at most."""
    onnx: bool | None = None
    """Time onnxruntime, too; by default when it is installed and the device is the CPU."""
    from_config: bool = False
    """Use random weights, even where there are others: they take the same time."""

    def __post_init__(self) -> None:
        shapes_of(self.batch, self.length)
        check_timing(self.timing_seconds)
        check_rounds(self.repeats)
        for name in ("batch", "length"):
            object.__setattr__(self, name, unlisted(getattr(self, name)))

    def to_plain(self) -> dict[str, Any]:
        """Plain data without the usual `timing_seconds`: the key of runs that are there stays."""
        plain = by_field(self)
        if self.timing_seconds == type(self).timing_seconds:
            del plain["timing_seconds"]
        return plain


@dataclass(frozen=True, kw_only=True)
class Probe:
    """Try a machine or an executor: nothing is measured, and no model is opened."""

    wait: float = 0.0
    """Seconds to sleep."""
    work: float = 0.0
    """Seconds of processor time to use up, in one thread."""
    fail: bool = False
    """Fail in the end."""
    say: str = ""
    """What comes out."""

    def __post_init__(self) -> None:
        if not (0 <= self.wait < 1e6 and 0 <= self.work < 1e6):
            raise UsageError("A probe waits and works for 0 seconds or more.")
