"""Heads chosen, removed, or only gated, repaired and scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from headcount.base.errors import UsageError
from headcount.base.options import Mistakes, changed, read, to_plain, types_of
from headcount.heads import Layout
from headcount.pruning.methods import TRAINED, Method, make_method, name_of, read_method
from headcount.repair.repairs import Repairs, read_repairs, repairs_to_plain
from headcount.runs.kinds.kind import MODEL, RunContext, RunKind, RunOutput, RunResult
from headcount.runs.prune_result import PruneResult
from headcount.tasks.calibration import Calibration
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring

if TYPE_CHECKING:
    from headcount.runs.run import Run

FREE = "free"
"""In place of a ratio: the method decides how many heads go."""
Ratio = float | Literal["free"] | None
NO_TARGET = (
    "The method '{}' trains the weights with its gates, so there is no full model that the repair "
    "'{}' could work towards: leave it out."
)


@dataclass(frozen=True, kw_only=True)
class Prune(RunKind):
    """Decide which heads stay, remove the others, repair, score."""

    result: ClassVar = PruneResult

    method: Method
    """How heads are chosen."""
    ratio: Ratio = None
    """Share of heads to remove; free lets the method decide, None where it says itself how many."""
    uniform: bool = False
    """Keep as many key-value heads in every layer of a stack, so that a plain config can say it."""
    repair: Repairs = ()
    """What happens after pruning, step by step."""
    learning: TrainOptions | None = None
    """How a method that trains gates does so, before pruning. None takes the repair's training,
    and then does not train a second time: so every method of a curve has the same training."""
    calibration: Calibration = field(default_factory=Calibration)
    """What the method and recovery look at."""
    scoring: Scoring = field(default_factory=Scoring)
    """What is scored; nothing without a task."""
    baseline: int = 3
    """Random prunings of the same size to compare with, repaired alike; 0 for none."""
    gated: bool = False
    """Close the gates of the heads instead of taking them out: it scores the same in less time."""

    def __post_init__(self) -> None:
        if self.baseline < 0:
            raise UsageError(f"The number of random prunings is not negative: {self.baseline}.")
        if self.gated and (self.repair or self.method.needs == "training"):
            raise UsageError("Only a model without the heads can be repaired: take them out.")
        if self.uniform and self.method.needs == "training":
            raise UsageError(TRAINED.format(self.name))

    @property
    def name(self) -> str:
        """The method's name."""
        return name_of(self.method)

    @property
    def share(self) -> float | None:
        """The share of heads to remove, which must be said; None where the method decides."""
        return read_ratio(self.method, self.ratio)

    def method_options(self) -> dict[str, Any]:
        """The method's options that are not its defaults, as plain data."""
        plain = to_plain(self.method)
        return {name: plain[name] for name in changed(self.method)}

    @property
    def trains(self) -> bool:
        """Whether the model is trained after heads were removed."""
        return any(step.needs == "training" for step in self.repair)

    def product(self) -> str | None:
        """A model, unless heads were only gated."""
        return None if self.gated else MODEL

    def execute(self, run: Run, context: RunContext) -> RunResult | RunOutput:
        """Prune, or score with closed gates; where all gates close, see `context.may_close`."""
        from headcount.learned.keeper import AllClosedError
        from headcount.runs.cutting import PruningRun
        from headcount.runs.opening import open_pruned
        from headcount.runs.prune import identity_of, prune_subject

        subject = open_pruned(run, context.subjects)
        pruning = PruningRun(subject=subject, options=self, seed=run.seed, note=context.note)
        identity = identity_of(subject, self, run.seed)
        if self.gated:
            decision, before = pruning.decide(), pruning.score_full()
            after = pruning.score(subject.model, [decision.mask])
            return RunOutput(
                result=pruning.result(decision, before, after),
                identity=identity,
                rows=pruning.used,
                value=after,
                notes=pruning.notes(),
            )
        try:
            pruned = prune_subject(subject, self, run.seed, context)
        except AllClosedError as error:
            if not context.may_close:
                raise
            result = pruning.closed(error, pruning.score_full())
            return RunOutput(result=result, identity=identity, rows=pruning.used)
        return RunResult(pruned.record, pruned)

    def to_plain(self) -> dict[str, Any]:
        """Plain data, the method by its name and options."""
        parts = {name: to_plain(getattr(self, name)) for name in types_of(Prune)}
        parts["repair"] = repairs_to_plain(self.repair)
        if not self.uniform:
            del parts["uniform"]  # what was asked before there was this option keeps its key
        return parts | {"method": {"name": self.name, **to_plain(self.method)}}

    @classmethod
    def read(cls, data: object, where: str) -> Prune:
        """What `to_plain` wrote."""
        if not isinstance(data, Mapping) or "method" not in data:
            raise UsageError(f"{where} names no method.")
        rest = {name: value for name, value in data.items() if name != "method"}
        mistakes, parts = Mistakes(), {"method": make_method("all-heads"), **rest}
        with mistakes.at("method"):
            parts["method"] = read_method(data["method"], f"{where}.method")
        if "repair" in data:
            parts["repair"] = ()
            with mistakes.at("repair"):
                parts["repair"] = read_repairs(data["repair"], f"{where}.repair")
        with mistakes.at("ratio"):
            if isinstance(share := data.get("ratio"), int | float):
                Layout(()).kept_at(share)
        options: list[Prune] = []
        with mistakes.at():
            options.append(read(cls, parts, where))
        mistakes.refuse()
        return options[0]


def read_ratio(method: Method, ratio: Ratio) -> float | None:
    """The share of heads that a method is asked to remove; None where it decides itself.

    >>> from headcount.pruning.methods import make_method
    >>> read_ratio(make_method("random"), 0.5), read_ratio(make_method("cluster"), "free")
    (0.5, None)
    """
    decides = method.ratio == "free"
    if ratio == FREE and decides:
        return None
    if ratio is None and (method.ratio == "none" or getattr(method, "leave", None)):
        return None
    if ratio is None or isinstance(ratio, str):
        free = f", or --ratio {FREE} to let the method decide" if decides else ""
        raise UsageError(
            f"The method '{name_of(method)}' needs a ratio: pass --ratio, the share of heads to "
            f"remove, 0 to 1{free}."
        )
    Layout(()).kept_at(ratio)
    return ratio
