"""What commands that cut share: the methods' own options, training, and what is asked of a cut."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from headcount.cli.common import say
from headcount.cli.masks import mask_text
from headcount.cli.typed import Typed, make_typed, typed
from headcount.errors import UsageError
from headcount.options import types_of
from headcount.pruning.methods import METHODS, Method, make_method
from headcount.training.options import PRESETS, TrainOptions
from headcount.training.scoring import Scoring

WHOLE_RUN = ("seed", "max_length")
"""Training options that are those of the whole run."""


def method_options(shown: frozenset[str] | None = None) -> Any:
    """A class of the options of all methods; the help has those in `shown`, None is all."""
    return _method_options(tuple((entry.name, METHODS[entry.name]) for entry in METHODS), shown)


@cache
def _method_options(kinds: tuple[tuple[str, Any], ...], shown: frozenset[str] | None) -> Any:
    return make_typed("MethodOptions", "Method", dict(kinds), shown=shown)


@cache
def training_options(shown: frozenset[str] | None = None) -> Any:
    """A class of the training options, but for those of the whole run."""
    return typed(TrainOptions, "Training", leave_out=WHOLE_RUN, shown=shown)


if TYPE_CHECKING:
    MethodOptions = Typed
    Trained = Typed
    CutScored = Typed
else:
    MethodOptions = method_options()
    Trained = training_options()
    CutScored = typed(Scoring, "Scoring", leave_out=("seed",))

METHOD_OPTIONS, TRAINED, CUT_SCORED = MethodOptions(), Trained(), CutScored()

Seed = Annotated[int, Parameter(help="Seed of everything random in the run.")]
Preset = Annotated[
    str,
    Parameter(help="finetune, translation or pocket: how training starts."),
]
Overwrite = Annotated[bool, Parameter(negative=(), help="Forget what is in --out; start anew.")]


def methods_of(chosen: Typed, names: Sequence[str]) -> list[Method]:
    """The methods with their options of those that were typed; one that none has is refused."""
    takes = {name: types_of(METHODS[name]) for name in names}
    given = chosen.given()
    if "keep" in given:
        given["keep"] = mask_text(given["keep"])
    for option in given:
        if not any(option in known for known in takes.values()):
            raise UsageError(f"--{option.replace('_', '-')} is no option of {' or '.join(names)}.")
    return [
        make_method(name, {option: given[option] for option in given if option in takes[name]})
        for name in names
    ]


def training_of(training: Typed, preset: str, seed: int, scoring: Scoring) -> TrainOptions:
    """The preset with what was typed; length and seed are those of the whole run."""
    return replace(training.on(PRESETS[preset]), seed=seed, max_length=scoring.max_length)


def help_for(function: Any, tokens: Iterable[str]) -> None:
    """Let the help show the options of the methods that are named, and training where it is asked.

    All of them are understood; there are too many to read at once.
    """
    words = [word for token in tokens for word in token.replace("=", " ").split()]
    named = {name.partition("+")[0] for word in words for name in word.split(",")}
    kinds: list[Any] = [METHODS[entry.name] for entry in METHODS if entry.name in named]
    trains = not {"--finetune", "--preset"}.isdisjoint(words)
    trains = trains or any(kind.needs == "training" for kind in kinds)
    own = {name for kind in kinds for name in types_of(kind)}
    types = getattr(function, "__annotations__", {})
    if "chosen" in types:
        types["chosen"] = method_options(frozenset(own))
        types["training"] = training_options(None if trains else frozenset())


@contextmanager
def going_on(out: Path) -> Generator[None]:
    """Tell what an interruption leaves."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"headcount: the same command again goes on with the runs in {out}.")
        raise
