"""Which distances were asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headcount.base.errors import UsageError
from headcount.base.names import unknown
from headcount.likeness.distances import DISTANCES


def check_names(
    names: str | Iterable[str], options: Mapping[str, Mapping[str, Any]] | None = None
) -> list[str]:
    """The distances by name, each once; "all" is every one that is registered but pq, which is
    another reading of bc, and but those of installed packages.

    >>> check_names("js"), check_names("all")[:7]
    (['js'], ['cos', 'corr', 'js', 'bc', 'dcor', 'pc', 'cc'])
    """
    asked = [names] if isinstance(names, str) else list(names)
    known = [entry.name for entry in DISTANCES]
    if asked == ["all"]:
        asked = [entry.name for entry in DISTANCES if entry.name != "pq" and not entry.package]
    if not asked:
        raise UsageError(f"Name at least one distance. Known: {', '.join(known)}.")
    for name in asked:
        if name not in DISTANCES:
            raise unknown(f"There is no distance '{name}'", name, [*known, "all"])
    for name in options or {}:
        if name not in asked:
            says = f"Options for '{name}', which is not among those asked for"
            raise unknown(says, name, asked, has="Asked")
    return list(dict.fromkeys(asked))
