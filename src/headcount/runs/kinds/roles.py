"""What every head does on data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from headcount.base.json_object import JsonObject
from headcount.behaviour.options import RoleOptions
from headcount.heads import Layout
from headcount.runs.contents import FILE
from headcount.runs.kinds.kind import RunContext, RunKind, RunOutput
from headcount.runs.results import Number, Result
from headcount.tasks.calibration import InputOptions

if TYPE_CHECKING:
    from headcount.runs.run import Run


Numbers = tuple[Number, ...]
"""One for each head in the order of the layout; null where a head has none."""
Weights = tuple[tuple[float, float], ...]
"""(key, weight)."""


@dataclass(frozen=True, kw_only=True)
class QuantityValues(JsonObject):
    """One number for every head."""

    unit: str
    """The unit."""
    what: str
    """What it is."""
    values: Numbers
    """The numbers, in the order of the layout; null where a head has none."""
    stderr: Numbers
    """Their standard errors."""
    low: Numbers
    """The lower ends of their 95 % intervals."""
    high: Numbers
    """The upper ends."""
    chance: Numbers | None = None
    """What equal attention gives on the same inputs, of quantities of attention."""


@dataclass(frozen=True, kw_only=True)
class ExampleAfter(JsonObject):
    """What the head attends to in the pruned model."""

    weights: Weights = ()
    """The first keys of the query as [key, weight]."""
    most: Weights = ()
    """For every query its first key and weight."""
    removed: bool = False
    """Whether the head was removed, and attends to nothing."""


@dataclass(frozen=True, kw_only=True)
class ExampleRow(JsonObject):
    """What a head attends to in a short row."""

    head: int
    """Its place in the order of the layout."""
    row: int | None = None
    """The number of the input."""
    decile: int
    """From 1, where the head is weakest, to 10, where it is strongest."""
    strength: float
    """How much it does what its role is."""
    tokens: tuple[str, ...]
    """The row."""
    keys: tuple[str, ...] | None = None
    """The row that it attends to, in cross-attention."""
    query: int
    """The query that is shown."""
    weights: Weights
    """The first keys of the query as [key, weight]."""
    most: Weights
    """For every query its first key and weight."""
    after: ExampleAfter | None = None
    """The same in the pruned model, where one was given."""


@dataclass(frozen=True, kw_only=True)
class RolesSummary(Result):
    """What every head does; `hc.load_roles` reads the file of `--out`."""

    layout: Layout
    """The heads; every list has one entry for each, in this order."""
    count: int
    """Inputs that means are over."""
    inputs: str
    """What these are."""
    quantities: Mapping[str, QuantityValues]
    """By name: previous, next, same, first, separator, duplicate, induction, reach, entropy,
    entropy_share, replaceable, kilobytes; with `--time` milliseconds; with `--alone` cost_alone,
    score_alone and the same with `_repaired`."""
    roles: tuple[str | None, ...]
    """The role of each head, or null."""
    chance: Mapping[str, Number]
    """The mean over heads of what equal attention gives, by quantity."""
    examples: tuple[ExampleRow, ...]
    """For each head some short rows, from where it is weakest to where it is strongest."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Model, class, what `separators` are in each stack (special, punctuation or null), `tokens`
    and `unknowns` of the replaceable shares, options, versions."""


@dataclass(frozen=True, kw_only=True)
class RolesOptions(RunKind):
    """What every head does on data."""

    result: ClassVar = RolesSummary
    seeded: ClassVar = "input_options"

    input_options: InputOptions = field(default_factory=InputOptions)
    """What the model reads."""
    role_options: RoleOptions = field(default_factory=RoleOptions)
    """What is measured beside roles."""
    pruned: str | None = field(default=None, metadata=FILE)
    """The same model with heads removed: where its heads look in the examples."""

    def execute(self, run: Run, context: RunContext) -> RunOutput:
        """Measure them on what the run reads; where it scores, on the task's own split."""
        from headcount.behaviour.measure import role_inputs, roles
        from headcount.models import fingerprint
        from headcount.runs.opening import depends_on, name_of, subject_key, task_of
        from headcount.runs.subject import Subject, Subjects
        from headcount.runs.values import told, used_inputs, used_rows
        from headcount.tasks.opening import open_model

        held = (context.subjects or Subjects()).held.get(subject_key(run, trains=False))
        given = None if held is None else held()
        task = given.task if given else None if run.task is None else task_of(run)
        scored = task if self.role_options.alone else None
        if given is not None:
            model, tokenizer = given.model, given.tokenizer
        else:
            model, tokenizer, _ = open_model(name_of(run), run.model_options, scored, reads=True)
        pruned = open_model(self.pruned, run.model_options, scored)[0] if self.pruned else None
        rows, name = role_inputs(model, tokenizer, self.input_options, task)
        result = roles(
            model,
            rows,
            task=task,
            samples=self.input_options.most,
            max_length=self.input_options.max_length,
            seed=self.input_options.seed,
            tokenizer=tokenizer,
            name=name,
            progress=context.report,
            pruned=pruned,
            **vars(self.role_options),
        )
        after = {} if pruned is None else {"pruned": fingerprint.identity(pruned, tokenizer)}
        identity = depends_on(run, model, tokenizer, inputs=told(rows), **after)
        used = {"measured": used_inputs(rows, name)}
        if scored is not None:
            identity["scored"] = Subject(model=model, task=scored).rows_of(scored.evaluation)
            limit = {"sampled": self.role_options.limit}
            used["evaluation"] = used_rows(identity["scored"], scored.evaluation) | limit
        summary = RolesSummary.from_json(result.to_json())
        return RunOutput(result=summary, identity=identity, rows=used, value=result)
