"""Names to things, looked up late: listing names imports nothing, using one imports its module.

METHODS = Registry("method")
METHODS.add("random", "headcount.pruning.random:select", "heads drawn at random")
METHODS["random"]            # imports the module now
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from headcount.base.errors import UsageError
from headcount.base.names import unknown


@dataclass(frozen=True)
class Entry:
    """One registered name: where it lives and what it does, in one line."""

    name: str
    target: str | Callable[..., Any]
    summary: str


class Registry:
    """A mapping from names to callables that are imported on first use."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, Entry] = {}

    def add(self, name: str, target: str | Callable[..., Any], summary: str) -> None:
        """Register `target`, a callable or a "package.module:attribute" string, under `name`."""
        if name in self._entries:
            raise UsageError(f"The {self.kind} '{name}' is registered already.")
        self._entries[name] = Entry(name, target, summary)

    def require(self, name: str) -> Entry:
        """The entry of this name; an unknown one is refused, and nothing is imported."""
        entry = self._entries.get(name)
        if entry is None:
            raise unknown(f"There is no {self.kind} '{name}'", name, sorted(self._entries))
        return entry

    def __getitem__(self, name: str) -> Callable[..., Any]:
        entry = self.require(name)
        if isinstance(entry.target, str):
            module, _, attribute = entry.target.partition(":")
            return getattr(import_module(module), attribute)
        return entry.target

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __len__(self) -> int:
        return len(self._entries)
