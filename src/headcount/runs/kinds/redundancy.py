"""A distance for every pair of heads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from headcount.base.json_object import JsonObject
from headcount.base.options import defined
from headcount.heads import Layout
from headcount.likeness.options import DistanceOptions
from headcount.runs.kinds.kind import RunContext, RunKind, RunOutput
from headcount.runs.results import Number, Result
from headcount.tasks.calibration import InputOptions

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from headcount.runs.run import Run
    from headcount.tasks.encoding import EncodedRows


@dataclass(frozen=True, kw_only=True)
class MatrixSummary(JsonObject):
    """One matrix of distances, over all pairs of different heads."""

    stack: str
    """encoder, cross or decoder."""
    distance: str
    """The distance."""
    mean: Number
    """The mean."""
    smallest: Number
    """The smallest."""
    largest: Number
    """The largest."""
    largest_error: Number
    """The largest standard error."""


@dataclass(frozen=True, kw_only=True)
class RedundancySummary(Result):
    """Distances between heads; the matrices are in the file beside the record."""

    layout: Layout
    """The heads."""
    count: int
    """Inputs."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """How they were measured: model, inputs, distances, options, seed, versions."""
    summary: tuple[MatrixSummary, ...]
    """Each matrix in short."""

    def columns(self) -> dict[str, Any]:
        """The mean of every matrix and its largest standard error."""
        several = len({matrix.stack for matrix in self.summary}) > 1
        columns: dict[str, Any] = {"inputs": self.count}
        for matrix in self.summary:
            name = f"{matrix.stack}.{matrix.distance}" if several else matrix.distance
            columns |= {name: matrix.mean, f"{name}.error": matrix.largest_error}
        return columns


@dataclass(frozen=True, kw_only=True)
class RedundancyOptions(RunKind):
    """A distance for every pair of heads."""

    result: ClassVar = RedundancySummary
    seeded: ClassVar = "input_options"

    input_options: InputOptions = field(default_factory=InputOptions)
    """What the model reads."""
    distance_options: DistanceOptions = field(default_factory=DistanceOptions)
    """Which distances."""

    def product(self) -> str:
        """The matrices."""
        return "redundancy.npz"

    def execute(self, run: Run, context: RunContext) -> RunOutput:
        """Measure it on what the run reads, into `out`; what is interrupted goes on from `work`."""
        from headcount.likeness.measure import redundancy
        from headcount.runs.opening import depends_on
        from headcount.runs.values import told, used_inputs

        model, tokenizer, rows, name = self._open(run)
        matrices = redundancy(
            model,
            rows,
            samples=self.input_options.most,
            seed=self.input_options.seed,
            tokenizer=tokenizer,
            name=name,
            state=context.work,
            keep_state=True,
            progress=context.report,
            **vars(self.distance_options),
        )
        if context.out is not None:
            matrices.save(context.out)
        return RunOutput(
            result=RedundancySummary.from_json(defined(matrices.to_json())),
            identity=depends_on(run, model, tokenizer, inputs=told(rows)),
            rows={"measured": used_inputs(rows, name)},
            value=matrices,
        )

    def plan(self, run: Run) -> dict[str, Any]:
        """What would be measured, on what."""
        from headcount.models.find import layout

        model, _, rows, name = self._open(run)
        return {
            "class": type(model).__name__,
            "heads": repr(layout(model)),
            "inputs": f"{min(len(rows), self.input_options.most)} ({name})",
            "distances": ", ".join(self.distance_options.distances),
        }

    def _open(
        self, run: Run
    ) -> tuple[PreTrainedModel, PreTrainedTokenizerBase | None, EncodedRows, str]:
        """(model, tokenizer, what it reads and what that is)."""
        from headcount.runs.opening import name_of, task_of
        from headcount.tasks.inputs import read_inputs
        from headcount.tasks.opening import open_model

        task = None if run.task is None else task_of(run)
        model, tokenizer, _ = open_model(name_of(run), run.model_options, reads=True)
        inputs = read_inputs(model, tokenizer, self.input_options, task, decides=True)
        return model, tokenizer, *inputs
