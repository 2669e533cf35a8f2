"""What commands that prune share: options of methods and repairs, calibration, training."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import field, make_dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from headcount.base.errors import UsageError
from headcount.base.options import by_field, types_of
from headcount.cli import groups
from headcount.cli.common import say
from headcount.cli.typed import TypedOptions, make_typed, typed
from headcount.heads.as_mask import mask_text
from headcount.models.model_options import ModelOptions
from headcount.pruning.methods import METHODS, Method, make_method
from headcount.repair.repairs import REPAIRS, Repair, Repairs, as_repairs, make_repair
from headcount.tasks.calibration import Calibration
from headcount.tasks.source import Source
from headcount.training.logging import Logging
from headcount.training.options import PRESETS, TrainOptions
from headcount.training.scoring import Scoring

if TYPE_CHECKING:
    from headcount.runs.subject import Subject

PRESET_NAME = "finetune"
PRESET = Parameter(help="Training options to start from: finetune, translation or pocket.")
REPAIR = Parameter(
    help="Steps after pruning, in order: recover, distil, lora, finetune (`headcount ls repairs`).",
    negative_iterable=(),
)


class PruneFlags:
    """The options of every command that prunes, as they were typed."""

    seed: int
    chosen: TypedOptions[Any]
    calibration: TypedOptions[Calibration]
    scoring: TypedOptions[Scoring]
    source: TypedOptions[Source]
    model_options: TypedOptions[ModelOptions]
    repair: tuple[str, ...]
    repairing: TypedOptions[Any]
    preset: str
    training: TypedOptions[TrainOptions]
    logging: TypedOptions[Logging]
    overwrite: bool
    dry_run: bool

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PruneFlags) and vars(self) == vars(other)

    __hash__ = object.__hash__

    def rows(self) -> Scoring:
        """The options of scoring; the seed is that of the whole run."""
        return replace(self.scoring.on(), seed=self.seed)

    def train(self, kind: type[TrainOptions] = TrainOptions) -> TrainOptions:
        """The preset with what was typed; length and seed are those of the whole run.

        Without a preset it begins with the defaults of the `kind`.
        """
        start = kind() if self.preset == PRESET_NAME else kind(**by_field(PRESETS[self.preset]))
        options = self.training.on(start)
        return replace(options, seed=self.seed, max_length=self.rows().max_length)

    def methods(self, names: Sequence[str]) -> list[Method]:
        """The methods with their options of those that were typed; what none has is refused."""
        takes = {name: types_of(METHODS[name]) for name in names}
        given = self.chosen.given()
        if "keep" in given:
            given["keep"] = mask_text(given["keep"])
        for option in given:
            if not any(option in known for known in takes.values()):
                flag = f"--{option.replace('_', '-')}"
                raise UsageError(f"{flag} is not an option of {' or '.join(names)}.")
        return [
            make_method(name, {option: given[option] for option in given if option in takes[name]})
            for name in names
        ]

    def repairs(self, *, recover: bool = False, finetune: bool = False) -> Repairs:
        """The steps of --repair and of its short forms, with the options that were typed."""
        names = ["recover"] if recover and "recover" not in self.repair else []
        names += self.repair
        names += ["finetune"] if finetune and "finetune" not in self.repair else []
        given = self.repairing.given()
        takes = {name: types_of(REPAIRS[name]) for name in names}
        for option in given:
            if not any(option in known for known in takes.values()):
                known = REPAIRS.loaded()
                owners = [name for name, kind in known.items() if option in types_of(kind)]
                raise UsageError(
                    f"--{option.replace('_', '-')} goes with --repair {' or '.join(owners)}."
                )
        steps: list[Repair] = []
        for name in names:
            options = {option: given[option] for option in given if option in takes[name]}
            kind: Any = REPAIRS[name]
            if issubclass(kind, TrainOptions):
                options = by_field(self.train(kind)) | options
            steps.append(make_repair(name, options))
        return as_repairs(steps)

    def subject(self, model: str, task: str | None, *, trains: bool = False) -> Subject:
        """The model and the task, opened; texts of --calibration are the data of embeddings."""
        source: Any = self.source
        if self._texts_are_data(task):
            source = replace(source, data=self.calibration.on().rows)
        return groups.open_subject(
            model, task, source, self.model_options, trains=trains, seed=self.seed
        )

    def calibrating(self, task: str | None) -> Calibration:
        """The calibration data, from the task where its data are the texts that were given."""
        given = self.calibration.on()
        return replace(given, rows=None) if self._texts_are_data(task) else given

    def _texts_are_data(self, task: str | None) -> bool:
        if {*self.source.given()} - {"metrics"} or not hasattr(
            self, "calibration"
        ):  # sweep has none
            return False
        if self.calibration.on().rows is None:
            return False
        from headcount.tasks.kinds import TASK_KINDS, task_kind

        return task in TASK_KINDS and task_kind(str(task)).compares


def cut_options(
    shown: frozenset[str] | None = None,
    *,
    trains: bool = True,
    calibrates: bool = True,
    packages: bool = True,
) -> type[PruneFlags]:
    """A class of these options: the help has those of methods in `shown`, and of training.

    Without `packages` it has no options of plugins that are installed, and imports none.
    """
    kinds, repairs = METHODS.loaded(packages=packages), REPAIRS.loaded(packages=packages)
    return _cut_options(tuple(kinds.items()), tuple(repairs.items()), shown, trains, calibrates)


@cache
def _cut_options(
    kinds: tuple[tuple[str, type], ...],
    repairs: tuple[tuple[str, type], ...],
    shown: frozenset[str] | None,
    trains: bool,
    calibrates: bool,
) -> type[PruneFlags]:
    chosen = make_typed("MethodOptions", "Method", dict(kinds), shown=shown)
    scored = typed(Scoring, "Scoring", leave_out=("seed",))
    hidden = None if trains else ()
    trained = typed(TrainOptions, "Training", leave_out=("seed", "max_length"), shown=hidden)
    repairing = make_typed("RepairOptions", "Repair", dict(repairs), types_of(TrainOptions))
    logged = typed(Logging, "Logging", leave_out=("run",), shown=hidden)
    parts: list[tuple[str, Any, Any]] = [
        ("seed", groups.Seed, 0),
        ("chosen", chosen, chosen()),
        ("calibration", groups.CalibrationFlags, groups.CALIBRATION_FLAGS),
        ("scoring", scored, scored()),
        ("source", groups.SourceFlags, groups.SOURCE_FLAGS),
        ("model_options", groups.ModelFlags, groups.MODEL_FLAGS),
        ("repair", Annotated[tuple[str, ...], REPAIR], ()),
        ("repairing", repairing, repairing()),
        ("preset", Annotated[str, PRESET], PRESET_NAME),
        ("training", trained, trained()),
        ("logging", logged, logged()),
        ("overwrite", groups.Overwrite, False),
        ("dry_run", groups.DryRun, False),
    ]
    left_out = () if calibrates else ("calibration", "repair", "repairing")
    fields = [
        (name, kind, field(default=default))
        for name, kind, default in parts
        if name not in left_out
    ]
    result = make_dataclass(
        "CutOptions", fields, bases=(PruneFlags,), frozen=True, kw_only=True, eq=False
    )
    result.__module__ = __name__  # cyclopts looks there for the types
    return Parameter(name="*")(result)


if TYPE_CHECKING:
    CutOptions = PruneFlags
    SweepOptions = PruneFlags
else:
    CutOptions = cut_options(packages=False)
    SweepOptions = cut_options(calibrates=False, packages=False)
CUT, SWEEP = CutOptions(), SweepOptions()


def help_for(function: Any, tokens: Iterable[str]) -> None:
    """Let the help show the options of the methods that are named, and of training where it is.

    All of them are understood; there are too many to read at once.
    """
    types = function.__annotations__
    words = [word for token in tokens for word in token.replace("=", " ").split()]
    named = {name.partition("+")[0] for word in words for name in word.split(",")}
    kinds: list[Any] = [METHODS[entry.name] for entry in METHODS if entry.name in named]
    repairs: list[Any] = [REPAIRS[entry.name] for entry in REPAIRS if entry.name in named]
    trains = not {"--finetune", "--preset"}.isdisjoint(words)
    trains = trains or any(issubclass(kind, TrainOptions) for kind in repairs)
    trains = trains or any(kind.needs == "training" for kind in kinds)
    shown = frozenset(name for kind in kinds for name in types_of(kind))
    calibrates = hasattr(function.__kwdefaults__["cut"], "calibration")
    types["cut"] = cut_options(shown, trains=trains, calibrates=calibrates)


@contextmanager
def going_on(out: Path) -> Generator[None]:
    """Say how to resume after an interruption."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"headcount: run the same command again to resume from the runs in {out}.")
        raise
