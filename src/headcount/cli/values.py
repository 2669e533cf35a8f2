"""What is typed, read alike in every command: lists with commas or blanks, whole numbers whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Any, NewType, Union, get_args, get_origin

from cyclopts import App, Argument, ArgumentCollection, CoercionError, Token

from headcount.base.files import expanded

Provider = Callable[[App, tuple[str, ...], ArgumentCollection], None]
MaskText = NewType("MaskText", str)
"""A mask as it is typed; its commas stand between layers, so they never part a list of masks."""


def tidy(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """For cyclopts, between reading the command line and turning its words into values."""
    del app, commands
    for argument in arguments:
        if argument.parse and not argument.children:
            tidy_argument(argument)


def tidy_argument(argument: Argument) -> None:
    """`a,b` in a list means `a b`; a number of things is never rounded."""
    kind, several = kind_of(argument.hint)
    if kind is Path:  # a Path forgets `./`, after which `~` would be the home
        argument.tokens[:] = [_as_named(token) for token in argument.tokens]
    if several:
        parts = [
            token.evolve(value=part)
            for token in argument.tokens
            for part in _parts(token.value, kind)
        ]
        argument.tokens[:] = [part.evolve(index=index) for index, part in enumerate(parts)]
    if kind is int:
        for token in argument.tokens:
            if "." in token.value and not _whole(token.value):
                raise CoercionError(token=token, argument=argument, target_type=int)


def _as_named(token: Token) -> Token:
    return token.evolve(value=str(expanded(token.value))) if token.value[:3] == "./~" else token


def kind_of(hint: Any) -> tuple[Any, bool]:
    """(type of a value, whether there are several): `list[int] | None` has several int."""
    if get_origin(hint) in (Union, UnionType):
        hints = [part for part in get_args(hint) if part is not type(None)]
        return kind_of(hints[0]) if len(hints) == 1 else (hint, False)
    if get_origin(hint) in (list, tuple):
        return get_args(hint)[0], True
    return hint, False


def _parts(text: str, kind: object) -> list[str]:
    if kind is MaskText or (kind is Path and Path(text).exists()):
        return [text]
    return [part.strip() for part in text.split(",") if part.strip()]


def _whole(text: str) -> bool:
    try:
        return float(text).is_integer()
    except ValueError:
        return False
