"""Options on the command line: a class whose fields may be left out, made of any options class.

    ScoringFlags = typed(Scoring, "Scoring", leave_out=("seed",))
    def evaluate(..., scoring: ScoringFlags = ScoringFlags()): ...
    scoring.on(Scoring(seed=3))                  # with what was typed
    scoring.on()                                 # the same on the class's defaults

Help and defaults come from the options class: a new option is one field there, and nothing here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, Field, field, make_dataclass, replace
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from cyclopts import Parameter

from headcount.base.options import Options, docs_of, types_of

OptionsT = TypeVar("OptionsT", bound=Options)
Owner = tuple[str, str, Field[Any]]
"""Whose an option is, its help, and its field."""


class TypedOptions(Generic[OptionsT]):
    """The options that were typed; a field that was left out is None."""

    kind: ClassVar[Any] = None
    """The options class, where it is one."""

    def __eq__(self, other: object) -> bool:
        # which options the help shows is no difference between two command lines
        return isinstance(other, TypedOptions) and self.given() == other.given()

    __hash__ = object.__hash__

    def given(self) -> dict[str, Any]:
        """The options that were typed, by name."""
        fields = dataclasses.fields(self)  # pyright: ignore[reportArgumentType]
        values = {field.name: getattr(self, field.name) for field in fields}
        return {name: value for name, value in values.items() if value is not None}

    def on(self, options: OptionsT | None = None) -> OptionsT:
        """The options, or the class's defaults, with what was typed."""
        start: Any = options or self.kind()
        return replace(start, **self.given())


def typed(
    kind: type[OptionsT],
    group: str,
    *,
    leave_out: Collection[str] = (),
    shown: Collection[str] | None = None,
) -> type[TypedOptions[OptionsT]]:
    """A class of the same options for a command, each of them optional."""
    result = make_typed(f"Typed{kind.__name__}", group, {"": kind}, leave_out, shown)
    result.kind = kind
    return result


def make_typed(
    name: str,
    group: str,
    kinds: Mapping[str, type[Options]],
    leave_out: Collection[str] = (),
    shown: Collection[str] | None = None,
) -> type[TypedOptions[Any]]:
    """One class of the options of several; a key names whose they are in the help.

    `shown` are the options that the help has, None for all: the others are understood as well.
    """
    owners: dict[str, list[Owner]] = {}
    types: dict[str, Any] = {}
    for owner, kind in kinds.items():
        docs, known = docs_of(kind), types_of(kind)
        for option in dataclasses.fields(kind):
            if option.init and option.name not in leave_out:
                types.setdefault(option.name, option.metadata.get("typed", known[option.name]))
                help = docs.get(option.name, "")
                owners.setdefault(option.name, []).append((owner, help, option))
    fields = [
        (
            option,
            Annotated[
                types[option] | None,
                _parameter(whose, group, show=shown is None or option in shown),
            ],
            field(default=None),
        )
        for option, whose in owners.items()
    ]
    result = make_dataclass(
        name, fields, bases=(TypedOptions,), frozen=True, kw_only=True, eq=False
    )
    result.__module__ = __name__  # cyclopts looks there for the types
    return Parameter(name="*")(result)


def _parameter(owners: Sequence[Owner], group: str, *, show: bool) -> Parameter:
    _, help, option = owners[0]
    names = ", ".join(owner for owner, *_ in owners if owner)
    defaults = sorted({_default(field) for *_, field in owners} - {""})
    parts = [f"{names}: {help[:1].lower()}{help[1:]}" if names else help]
    parts += [f"[default: {' or '.join(defaults)}]"] if defaults else []
    return Parameter(
        name=option.metadata.get("names"),
        help=" ".join(parts),
        group=group,
        show=show,
        show_default=False,
        negative_iterable=(),
    )


def _default(option: Field[Any]) -> str:
    value = option.default
    if value is MISSING or value in (None, "", ()) or isinstance(value, bool):
        return ""
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
