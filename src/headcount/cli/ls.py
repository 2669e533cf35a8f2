"""`headcount ls [KIND]`: the available methods, tasks, models and so on."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from headcount.base.names import unknown
from headcount.cli.common import Json, emit
from headcount.views.tables.columns import table

# Kind -> where its list is: a Registry, or anything that yields names or things with a name and
# a summary. A room adds one line here; it is shown once its module is there.
KINDS = {
    "commands": "headcount.cli.commands:COMMANDS",
    "distances": "headcount.likeness.distances:DISTANCES",
    "executors": "headcount.studies.executors:EXECUTORS",
    "extras": "headcount.base.extras:EXTRAS",
    "formats": "headcount.exports.formats:FORMATS",
    "methods": "headcount.pruning.methods:METHODS",
    "models": "headcount.models.shipped:MODELS",
    "repairs": "headcount.repair.repairs:REPAIRS",
    "runs": "headcount.runs.kinds:KINDS",
    "stacks": "headcount.heads:STACKS",
    "tasks": "headcount.tasks.catalog:TASKS",
}


def kinds() -> list[str]:
    """The kinds that are there."""
    return [kind for kind, where in KINDS.items() if _exists(where.partition(":")[0])]


def listing(kind: str) -> list[dict[str, str]]:
    """The names of one kind, each with what it is in one line."""
    if kind not in kinds():
        raise unknown(f"There is no list of '{kind}'", kind, kinds())
    module, _, attribute = KINDS[kind].partition(":")
    things: Iterable[Any] = getattr(import_module(module), attribute)
    return [
        {"name": thing, "summary": ""}
        if isinstance(thing, str)
        else {"name": thing.name, "summary": thing.summary}
        for thing in things
    ]


def ls(kind: str | None = None, *, as_json: Json = False) -> None:
    """List the available methods, tasks, distances, models and so on.

    `headcount ls` lists everything, `headcount ls extras` one kind.

    Parameters
    ----------
    kind
        What to list: commands, extras, stacks and so on; everything when left out.
    """
    data = {name: listing(name) for name in ([kind] if kind else kinds())}
    rows = [(name, row["name"], row["summary"]) for name, rows in data.items() for row in rows]
    emit(data, as_json=as_json, table=table(["kind", "name", "description"], rows))


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the room it is in
        return False
