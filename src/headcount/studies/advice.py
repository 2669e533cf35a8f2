"""What is done where nothing is said: one advice for the command line, for Python and the docs.

With a task that the model is trained for, heads are chosen by the surgeon and the output
projections solved again: of what needs no training the best on every task tried (findings.md).
Without one there is nothing to look at but the model, so heads that attend alike are clustered.
How many heads may go is for the user to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from headcount.errors import UsageError
from headcount.heads import Layout

BEST = "surgeon"
"""The method with a task, followed by recovery."""
NO_DATA = "cluster"
"""The method without one."""
FREE = "free"
"""In place of a ratio: the method decides how many heads go."""
FREE_METHODS = ("cluster", "straight-through", "hard-concrete")
OWN_NUMBERS = ("pattern", "layers")
"""Methods whose options say how many heads stay."""
Ratio = float | Literal["free"] | None


@dataclass(frozen=True)
class Choice:
    """How heads are chosen, whether the projections are solved again, and what to tell of it."""

    method: str
    recover: bool
    note: str | None = None


def choose(method: str | None, recover: bool | None, *, task: bool, fresh: bool = False) -> Choice:
    """What was asked for, filled up with what is best; `fresh` is a task head not trained yet.

    >>> choose(None, None, task=True).method, choose(None, None, task=False).method
    ('surgeon', 'cluster')
    >>> choose("importance", None, task=True)
    Choice(method='importance', recover=False, note=None)
    """
    if method is not None:
        return Choice(method, bool(recover))
    if task and not fresh:
        solved = recover is not False
        then = " and the output projections solved again" if solved else ""
        text = f"No method was named: heads are chosen by '{BEST}'{then}; nothing is trained for it"
        return Choice(BEST, solved, f"{text}.")
    why = "and the task head is new" if task else "and no task"
    then = "" if task else " Nothing is scored; with a task it would be chosen better and scored."
    return Choice(
        NO_DATA,
        bool(recover),
        f"No method was named {why}: heads are chosen by '{NO_DATA}', which needs no data.{then}",
    )


def read_ratio(method: str, ratio: Ratio, options: Mapping[str, Any]) -> float | None:
    """The share of heads to remove, which must be said; None where the method decides."""
    if ratio == FREE and method in FREE_METHODS:
        return None
    if ratio is None and (method in OWN_NUMBERS or options.get("leave")):
        return None
    if ratio is None or isinstance(ratio, str):
        free = f", or --ratio {FREE} to let the method decide" if method in FREE_METHODS else ""
        raise UsageError(
            f"The method '{method}' needs a ratio: pass --ratio, the share of heads to remove, 0 "
            f"to 1{free}."
        )
    Layout(()).kept_at(ratio)
    return ratio
