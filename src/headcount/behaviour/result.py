"""What `hc.roles` gives: quantities of every head with intervals, their roles, and examples.

roles["previous"].values         # one number for each head, in the order of the layout
roles.roles                      # previous, next, same, first, …, or None for each head
roles.save("roles.json");  roles = hc.load_roles("roles.json")
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headcount.base import html
from headcount.base.errors import UsageError
from headcount.base.files import as_path, read_json, write_json
from headcount.base.names import unknown
from headcount.base.text import line, short
from headcount.behaviour.words import CLEAR, QUANTITIES, ROLES
from headcount.heads import Head, Layout
from headcount.likeness.result import DAMAGED

FORMAT = "headcount roles"
VERSION = 1
Array = NDArray[np.float64]
NUMBERS = ("values", "stderr", "low", "high", "chance")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Quantity:
    """One number for every head, in the order of the layout; NaN where a head has none."""

    unit: str
    what: str
    values: Array
    stderr: Array
    low: Array
    """Lower end of the 95 % interval."""
    high: Array
    chance: Array | None = None
    """What equal attention to all visible keys would give, on the same inputs."""

    def __repr__(self) -> str:
        known = self.values[~np.isnan(self.values)]
        ends = f"{known.min():.4g} to {known.max():.4g}" if len(known) else "of no head"
        return line(f"Quantity({self.what}: {ends} {self.unit})")

    def to_json(self) -> dict[str, object]:
        """A plain dict; what is undefined is None."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        lists = {
            name: [_plain(number) for number in array.tolist()]
            for name, array in numbers.items()
            if array is not None
        }
        return {"unit": self.unit, "what": self.what, **lists}


def quantity(
    name: str,
    mean: ArrayLike,
    stderr: ArrayLike,
    count: ArrayLike | None = None,
    *,
    ends: tuple[Array, Array] | None = None,
    chance: Array | None = None,
    unit: str | None = None,
    what: str | None = None,
) -> Quantity:
    """A quantity with Student's interval for `count` values behind each mean, or between `ends`.

    Student's interval of a share stays in [0, 1]; without a count or ends there is none.
    """
    usual_unit, usual_what = QUANTITIES[name]
    unit = unit or usual_unit
    mean, stderr = np.asarray(mean, np.float64), np.asarray(stderr, np.float64)
    low, high = (np.full(len(mean), np.nan),) * 2 if ends is None else ends
    if count is not None:
        from scipy.stats import t

        wide = t.ppf(0.975, np.maximum(np.asarray(count) - 1, 1)) * stderr
        bounds = (0.0, 1.0) if unit == "share" else (None, None)
        low, high = (np.clip(end, *bounds) for end in (mean - wide, mean + wide))
    return Quantity(
        unit=unit,
        what=what or usual_what,
        values=mean,
        stderr=stderr,
        low=low,
        high=high,
        chance=chance,
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Roles:
    """What every head of a model does on some inputs."""

    layout: Layout
    count: int
    """Inputs behind the means."""
    inputs: str
    """What they are."""
    quantities: Mapping[str, Quantity]
    examples: Sequence[Mapping[str, Any]] = ()
    """Where heads attend in short rows, from where they are weakest to where they are strongest."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Model, settings and versions, as plain values."""

    def __post_init__(self) -> None:
        for name, numbers in self.quantities.items():
            for array in (getattr(numbers, part) for part in NUMBERS):
                if array is not None and array.shape != (len(self.layout),):
                    raise UsageError(
                        f"'{name}' has {array.size} numbers, and there are {len(self.layout)} "
                        "heads."
                    )

    def __getitem__(self, name: str) -> Quantity:
        if name not in self.quantities:
            says = f"The quantity '{name}' was not measured"
            raise unknown(says, name, self.quantities, has="Measured")
        return self.quantities[name]

    @property
    def roles(self) -> tuple[str | None, ...]:
        """For every head its role: the largest share of its attention, where it is clearly more
        than chance.

        Chance c is what equal attention to all visible keys gives on the same inputs. How far a
        score x is on the way from chance to all attention is (x - c) / (1 - c). The role with the
        largest such share is given where the lower end of its 95 % interval has a share of a
        quarter or more; no other head has a role.
        """
        names = [name for name in ROLES if name in self.quantities]
        if not names:
            return (None,) * len(self.layout)
        shares = [self.quantities[name] for name in names]
        way = np.array([_way(share.values, share.chance) for share in shares])  # (role, head)
        low = np.array([_way(share.low, share.chance) for share in shares])
        best = np.where(np.isnan(way), -np.inf, way).argmax(0)
        clear = np.take_along_axis(low, best[None], 0)[0] >= CLEAR  # NaN is not clear
        return tuple(names[at] if ok else None for at, ok in zip(best, clear, strict=True))

    @property
    def chance(self) -> dict[str, float]:
        """What equal attention would give, mean over heads."""
        with np.errstate(invalid="ignore"):
            chances = {name: numbers.chance for name, numbers in self.quantities.items()}
            return {
                name: math.nan if np.isnan(chance).all() else float(np.nanmean(chance))
                for name, chance in chances.items()
                if chance is not None
            }

    def __repr__(self) -> str:
        counts = Counter(role for role in self.roles if role)
        listed = ", ".join(f"{many} {role}" for role, many in counts.most_common())
        end = f"{self.count} inputs)"
        brief = f"Roles({len(self.layout)} heads, {counts.total()} with a role; {end}"
        return line(f"Roles({len(self.layout)} heads: {listed or 'no roles'}; {end}", brief)

    def _repr_html_(self) -> str:
        by_head = dict(zip(self.layout, self.roles, strict=True))
        strengths = [
            0.0 if role is None else float(self.quantities[role].values[at])
            for at, role in enumerate(self.roles)
        ]
        shades = dict(zip(self.layout, strengths, strict=True))

        def say(head: Head) -> str:
            role = by_head[head]
            return f"{role} {shades[head]:.3g}" if role else "no role"

        note = "the darker, the stronger its role"
        return html.grid(f"{self!r}; {note}", self.layout, lambda head: shades[head] or None, say)

    def to_json(self) -> dict[str, object]:
        """A plain dict that `load_roles` reads back."""
        return {
            "layout": self.layout.to_json(),
            "count": self.count,
            "inputs": self.inputs,
            "quantities": {name: numbers.to_json() for name, numbers in self.quantities.items()},
            "roles": list(self.roles),
            "chance": {name: _plain(value) for name, value in self.chance.items()},
            "examples": [dict(example) for example in self.examples],
            "provenance": dict(self.provenance),
        }

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write one JSON file, whole or not at all."""
        about = {"format": FORMAT, "version": VERSION}
        write_json(path, about | self.to_json(), indent=None)
        return Path(path)


def _plain(number: float) -> float | None:
    """Seven digits, as many as single precision has; None for what is not a number."""
    return float(f"{number:.7g}") if math.isfinite(number) else None


def _way(values: Array, chance: Array | None) -> Array:
    """How far on the way from chance to all attention."""
    c = np.zeros_like(values) if chance is None else chance
    return (values - c) / np.maximum(1 - c, 1e-9)


def load_roles(path: str | os.PathLike[str]) -> Roles:
    """The value that `Roles.save` or `headcount roles --out` wrote."""
    data = read_json(as_path(path, "file of roles"), "roles")
    if not isinstance(data, dict) or (data.get("format") != FORMAT and data.get("kind") != "roles"):
        raise UsageError(f"{path} is no file of roles.")
    if data.get("format") == FORMAT and data.get("version") != VERSION:
        raise UsageError(
            f"'{path}' was written by another version of headcount (format "
            f"{short(data.get('version'))}, this one reads {VERSION})."
        )
    try:
        return Roles(
            layout=Layout.from_json(data["layout"]),
            count=int(data["count"]),
            inputs=str(data["inputs"]),
            quantities={str(n): _quantity(part) for n, part in data["quantities"].items()},
            examples=tuple(dict(example) for example in data["examples"]),
            provenance=_provenance(data["provenance"]),
        )
    except (*DAMAGED, AttributeError) as error:
        raise UsageError(f"The roles in '{path}' are damaged: {short(str(error))}.") from error


def _provenance(data: Mapping[str, object]) -> dict[str, object]:
    """How it was made; what pages read of it is of the right kind."""
    kinds = {"separators": dict, "tokens": int, "unknowns": int}
    for name, kind in kinds.items():
        if name in data and not isinstance(data[name], kind):
            raise ValueError(f"{name} is {short(data[name])}")
    return dict(data)


def _quantity(data: Mapping[str, Any]) -> Quantity:
    arrays = {
        name: np.array([math.nan if number is None else float(number) for number in data[name]])
        for name in NUMBERS
        if name in data
    }
    return Quantity(unit=str(data["unit"]), what=str(data["what"]), **arrays)
