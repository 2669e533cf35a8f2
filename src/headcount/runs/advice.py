"""What is done where nothing is said: one advice for the command line, for Python and the docs.

With a task that the model is trained for, heads are chosen by the surgeon and the output
projections solved again: of what needs no training the best on every task tried (findings.md).
Without one there is nothing to look at but the model, so heads that attend alike are clustered.
How many heads may go is for the user to say.
"""

from __future__ import annotations

from dataclasses import dataclass

from headcount.pruning.methods import AnyMethod, Method, as_method
from headcount.repair.recover import Recover
from headcount.repair.repairs import Repairs

BEST = "surgeon"
"""The method with a task, followed by recovery."""
NO_DATA = "cluster"
"""The method without one."""
CURVES = ("random", "cluster", "importance")
"""The methods of a curve."""
RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""The shares of heads that a curve removes."""
ALL = "all-heads"
"""In a comparison, no pruning: the given model with the same training."""
RECOVER = "+recover"
"""In a comparison, after a method's name: recovery between its pruning and its training."""
COMPARED = (
    *(ALL, "random", "importance", "hard-concrete", "meta", "subset", "cluster"),
    *("straight-through", "surgeon+recover"),
)
"""The methods of a comparison."""


@dataclass(frozen=True)
class Choice:
    """How heads are chosen, what happens after pruning, and what to tell of it."""

    method: Method
    repair: Repairs
    note: str | None = None


def choose(
    method: AnyMethod | None, repair: Repairs | None, *, task: bool, fresh: bool = False
) -> Choice:
    """What was asked for, filled up with what is best; `fresh` is a task head not trained yet.

    A repair that was given is taken as it is; None is nothing where a method is named.

    >>> [type(choose(None, None, task=task).method).__name__ for task in (True, False)]
    ['Surgeon', 'Cluster']
    >>> bool(choose(None, None, task=True).repair), bool(choose("random", None, task=True).repair)
    (True, False)
    """
    if method is not None:
        return Choice(as_method(method), repair or ())
    if task and not fresh:
        steps = (Recover(),) if repair is None else repair
        recovers = any(isinstance(step, Recover) for step in steps)
        then = " and the output projections solved again" if recovers else ""
        text = f"No method was named: heads are chosen by '{BEST}'{then}; nothing is trained for it"
        return Choice(as_method(BEST), steps, f"{text}.")
    why = "and the task head is new" if task else "and no task"
    then = "" if task else " Nothing is scored; with a task it would be chosen better and scored."
    return Choice(
        as_method(NO_DATA),
        repair or (),
        f"No method was named {why}: heads are chosen by '{NO_DATA}', which needs no data.{then}",
    )
