"""Names to things, looked up late: listing names imports nothing, using one imports its module.

METHODS = Registry("method", plugins="headcount.methods")
METHODS.add("random", "headcount.pruning.random:Random", "heads drawn at random")
METHODS["random"]            # imports the module now

Packages add names by entry points of the registry's group. Their metadata are read when a name is
not headcount's own, or all are listed; a package is imported when one of its names is used, and
one that cannot be imported never stands in the way of other names.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from headcount.base.errors import UsageError, in_words
from headcount.base.names import unknown
from headcount.base.options import types_of

log = logging.getLogger("headcount")


@dataclass(frozen=True)
class Entry:
    """One registered name: where it lives and what it does, in one line."""

    name: str
    target: str | Callable[..., Any]
    summary: str
    package: str | None = None
    """The installed package whose entry point it is, with its version."""


class Registry:
    """A mapping from names to callables that are imported on first use."""

    def __init__(self, kind: str, *, plugins: str | None = None) -> None:
        self.kind, self.group = kind, plugins
        self._entries: dict[str, Entry] = {}
        self._packages: dict[str, Entry] | None = None
        self._broken: set[str] = set()

    def add(self, name: str, target: str | Callable[..., object], summary: str) -> None:
        """Register `target`, a callable or a "package.module:attribute" string, under `name`."""
        if name in self._entries:
            raise UsageError(f"The {self.kind} '{name}' is registered already.")
        self._entries[name] = Entry(name, target, summary)

    def require(self, name: str) -> Entry:
        """The entry of this name; an unknown one is refused, and nothing is imported."""
        entry = self._entries.get(name) or self._plugins().get(name)
        if entry is None:
            known = sorted(entry.name for entry in self)
            raise unknown(f"There is no {self.kind} '{name}'", name, known)
        return entry

    def __getitem__(self, name: str) -> Callable[..., Any]:
        entry = self.require(name)
        if not isinstance(entry.target, str):
            return entry.target
        module, _, attribute = entry.target.partition(":")
        if entry.package is None:
            return getattr(import_module(module), attribute)
        try:
            return getattr(import_module(module), attribute)
        except Exception as error:
            raise UsageError(
                f"The {self.kind} '{name}' of the package {entry.package} cannot be loaded: "
                f"{in_words(error)}."
            ) from error

    def loaded(self, *, packages: bool = True) -> dict[str, Any]:
        """Everything by name, imported; a package that cannot be is named once and left out."""
        targets: dict[str, Any] = {}
        for entry in self if packages else self._entries.values():
            try:
                targets[entry.name] = self[entry.name]
            except UsageError as error:
                if entry.name not in self._broken:
                    log.warning("%s", error)
                self._broken.add(entry.name)
        return targets

    def make(self, name: str, options: Mapping[str, object] | None = None) -> Any:
        """The options class of this name with these options; an unknown option is refused."""
        kind: Any = self[name]
        for option in options or {}:
            if option not in types_of(kind):
                says = f"The {self.kind} '{name}' has no option '{option}'"
                raise unknown(says, option, types_of(kind), has="It has")
        return kind(**(options or {}))

    def name_of(self, target: Callable[..., object]) -> str:
        """The name that a class or function is registered by; one that is not is refused."""
        for entry in self:
            if entry.target is target:
                return entry.name
            # what has another name is not imported to see that it is something else
            if str(entry.target).rpartition(":")[2] == target.__name__:
                with suppress(UsageError):
                    if self[entry.name] is target:
                        return entry.name
        raise UsageError(f"{target.__name__} is no {self.kind} that is registered: add it first.")

    def __iter__(self) -> Iterator[Entry]:
        more = [entry for name, entry in self._plugins().items() if name not in self._entries]
        return iter([*self._entries.values(), *more])

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._plugins()

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _plugins(self) -> dict[str, Entry]:
        """The entry points of packages, from their metadata alone, read once."""
        if self._packages is None:
            self._packages = {} if self.group is None else self._read(self.group)
        return self._packages

    def _read(self, group: str) -> dict[str, Entry]:
        from importlib.metadata import entry_points

        entries: dict[str, Entry] = {}
        for point in entry_points(group=group):
            package = "?" if point.dist is None else f"{point.dist.name} {point.dist.version}"
            about = "" if point.dist is None else point.dist.metadata["Summary"] or ""
            if point.name in self._entries or point.name in entries:
                log.warning(
                    "The package %s has a %s '%s', and there is one of that name already: it is "
                    "left out.", package, self.kind, point.name,
                )  # fmt: skip
                continue
            entries[point.name] = Entry(point.name, point.value, about or package, package)
        return entries
