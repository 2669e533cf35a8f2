"""What every head does on data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from headcount.behaviour.options import RoleOptions
from headcount.runs.contents import FILE
from headcount.runs.kinds.kind import RunContext, RunKind, RunOutput
from headcount.tasks.calibration import InputOptions

if TYPE_CHECKING:
    from headcount.runs.run import Run


@dataclass(frozen=True, kw_only=True)
class RolesOptions(RunKind):
    """What every head does on data."""

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
        from headcount.runs.data import used_inputs, used_rows
        from headcount.runs.opening import depends_on, name_of, task_of
        from headcount.runs.subject import Subject
        from headcount.runs.values import told
        from headcount.tasks.opening import open_model

        task = None if run.task is None else task_of(run)
        scored = task if self.role_options.alone else None
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
        return RunOutput(result=result.to_json(), identity=identity, rows=used, value=result)
