"""Options on the command line: a class whose fields may be left out, made of any options class.

    Scored = typed(Scoring, "Scoring", leave_out=("seed",))
    def evaluate(..., scoring: Scored = Scored()): ...
    scoring.on(Scoring(seed=3))                  # with what was typed
    scoring.on()                                 # the same on the class's defaults

Help and defaults come from the options class: a new option is one field there, and nothing here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from dataclasses import MISSING, Field, field, make_dataclass, replace
from typing import Annotated, Any, ClassVar

from cyclopts import Parameter

from headcount.base.options import Options, docs_of, types_of


class TypedOptions:
    """What was typed of some options; a field that was left out is None."""

    kind: ClassVar[Any] = None
    """The options class, where it is one."""

    def __eq__(self, other: object) -> bool:
        # which options the help shows is no difference between two command lines
        return isinstance(other, TypedOptions) and self.given() == other.given()

    __hash__ = object.__hash__

    def given(self) -> dict[str, Any]:
        """The options that were typed, by name."""
        every = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}  # pyright: ignore[reportArgumentType]
        return {name: value for name, value in every.items() if value is not None}

    def on(self, options: Any = None) -> Any:
        """The options, or the class's defaults, with what was typed."""
        return replace(options or self.kind(), **self.given())


def typed(
    kind: type[Options],
    group: str,
    *,
    leave_out: Collection[str] = (),
    shown: Collection[str] | None = None,
) -> Any:
    """A class of the same options for a command, each of them optional."""
    made = make_typed(f"Typed{kind.__name__}", group, {"": kind}, leave_out, shown)
    made.kind = kind
    return made


def make_typed(
    name: str,
    group: str,
    kinds: dict[str, type[Options]],
    leave_out: Iterable[str] = (),
    shown: Collection[str] | None = None,
) -> Any:
    """One class of the options of several; a key names whose they are in the help.

    `shown` are the options that the help has, None for all: the others are understood as well.
    """
    made: dict[str, list[tuple[str, Any, str, Field[Any]]]] = {}
    for owner, kind in kinds.items():
        docs, types = docs_of(kind), types_of(kind)
        for each in dataclasses.fields(kind):
            if each.init and each.name not in leave_out:
                wanted = each.metadata.get("typed", types[each.name])
                made.setdefault(each.name, []).append(
                    (owner, wanted, docs.get(each.name, ""), each)
                )
    fields = [
        _field(name, owners, group, shown is None or name in shown) for name, owners in made.items()
    ]
    result = make_dataclass(
        name, fields, bases=(TypedOptions,), frozen=True, kw_only=True, eq=False
    )
    result.__module__ = __name__  # cyclopts looks there for the types
    return Parameter(name="*")(result)


def _field(
    name: str, owners: list[tuple[str, Any, str, Field[Any]]], group: str, show: bool
) -> Any:
    _, wanted, doc, _ = owners[0]
    said = ", ".join(owner for owner, *_ in owners if owner)
    shown = sorted({_default(each) for *_, each in owners} - {""})
    parts = [f"{said}: {doc[:1].lower()}{doc[1:]}" if said else doc]
    parts += [f"[default: {' or '.join(shown)}]"] if shown else []
    named = owners[0][3].metadata.get("names")
    parameter = Parameter(
        name=named, help=" ".join(parts), group=group, show=show, show_default=False,
        negative_iterable=(),
    )  # fmt: skip
    return name, Annotated[wanted | None, parameter], field(default=None)


def _default(each: Field[Any]) -> str:
    if each.default is MISSING or each.default in (None, "", ()):
        return ""
    value = each.default
    if isinstance(value, bool):
        return ""
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
