"""How redundancy is measured and compared, and which distances."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headcount.base.errors import UsageError
from headcount.base.names import unknown
from headcount.base.options import checked
from headcount.likeness.distances import DISTANCES, Options, check_option_names


def check_names(names: str | Iterable[str], options: Options | None = None) -> list[str]:
    """The distances by name, each once; "all" is every one that is registered but pq, which is
    another reading of bc, and but those of installed packages.

    >>> check_names("js"), check_names("all")[:7]
    (['js'], ['cos', 'corr', 'js', 'bc', 'dcor', 'pc', 'cc'])
    """
    requested = [names] if isinstance(names, str) else list(names)
    known = [entry.name for entry in DISTANCES]
    if requested == ["all"]:
        requested = [entry.name for entry in DISTANCES if entry.name != "pq" and not entry.package]
    if not requested:
        raise UsageError(f"Name at least one distance. Known: {', '.join(known)}.")
    for name in requested:
        if name not in DISTANCES:
            raise unknown(f"There is no distance '{name}'", name, [*known, "all"])
    check_option_names(options or {}, requested)
    return list(dict.fromkeys(requested))


@dataclass(frozen=True, kw_only=True)
@checked
class DistanceOptions:
    """Which distances, and how exactly."""

    distances: tuple[str, ...] = ("js", "dcor")
    """Which distances, or `all`; see `headcount ls distances`."""
    tolerance: float | None = None
    """Stop when every standard error is at most this."""

    def __post_init__(self) -> None:
        check_names(self.distances)
        check_tolerance(self.tolerance)


def check_tolerance(tolerance: float | None) -> None:
    """Refuse a tolerance that no run could reach."""
    if tolerance is not None and not tolerance > 0:
        raise UsageError(f"The tolerance of the standard error is above 0, not {tolerance}.")


@dataclass(frozen=True, kw_only=True)
@checked
class AgreementOptions:
    """How matrices of several files are compared."""

    clusters: int = 3
    """How many clusters of layers to make."""
    permutations: int = 999
    """Permutations of heads behind each p."""
    seed: int = 0
    """Seed of permutations and intervals."""
