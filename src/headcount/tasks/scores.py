"""A score and a difference of scores: a value with its 95 % interval, to read and as plain data."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from headcount.base.files import require_fields
from headcount.base.options import defined
from headcount.base.text import line


@dataclass(frozen=True, kw_only=True)
class MetricEstimate:
    """A number in a metric's unit with its 95 % interval; NaN where it is undefined."""

    metric: str
    value: float
    low: float
    high: float
    no_interval: str = ""
    """Why there is no interval."""

    def to_json(self) -> dict[str, Any]:
        """A plain dict; what is undefined is None, and a reason is left out where there is none."""
        return {
            name: defined(value)
            for name, value in asdict(self).items()
            if name != "no_interval" or value
        }

    def _reason(self) -> str:
        return f"(no interval: {self.no_interval})" if self.no_interval else ""


class Score(MetricEstimate):
    """One metric's value with its 95 % interval.

    >>> print(Score(metric="f1", value=0.5, low=0.4, high=0.6))
    f1 0.5000 [0.4000, 0.6000]
    >>> print(Score(metric="f1", value=math.nan, low=math.nan, high=math.nan))
    f1 undefined
    """

    @property
    def shown(self) -> str:
        """The value to read."""
        return "undefined" if math.isnan(self.value) else f"{self.value:.4f}"

    @property
    def interval(self) -> str:
        """The interval to read, or why there is none; empty where none was computed."""
        if math.isnan(self.low):
            return self._reason()
        return f"[{self.low:.4f}, {self.high:.4f}]"

    def __str__(self) -> str:
        return f"{self.metric} {self.shown} {self.interval}".rstrip()

    def __repr__(self) -> str:
        return line(f"Score({self})")

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Score:
        """What `to_json` wrote."""
        types = {"metric": str, **dict.fromkeys(("value", "low", "high"), float | None)}
        some = {"no_interval": str}
        require_fields(data, types | some, "This is no score", optional=some)
        numbers = {name: data[name] for name in ("value", "low", "high")}
        return cls(
            metric=data["metric"],
            no_interval=data.get("no_interval", ""),
            **{name: math.nan if value is None else value for name, value in numbers.items()},
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class Difference(MetricEstimate):
    """How much more a metric is after than before on the same rows, with its 95 % interval.

    >>> print(Difference(metric="accuracy", value=-0.003, low=-0.0112, high=0.004))
    −0.003 [−0.011, +0.004]
    >>> print(Difference(metric="perplexity", value=3.0, low=2.5, high=3.5, relative=0.1))
    +3.000 [+2.500, +3.500] (+10.0 %)
    """

    relative: float = math.nan
    """The difference as a share of the score before, of metrics without a largest value."""

    def to_json(self) -> dict[str, Any]:
        """A plain dict; a share is left out where there is none."""
        data = super().to_json()
        if data["relative"] is None:
            del data["relative"]
        return data

    def __str__(self) -> str:
        share = "" if math.isnan(self.relative) else f" ({self.relative:+.1%})"
        share = share.replace("%", " %").replace("-", "\N{MINUS SIGN}")
        if math.isnan(self.low):
            return f"{_signed(self.value)}{share} {self._reason()}".rstrip()
        return f"{_signed(self.value)} [{_signed(self.low)}, {_signed(self.high)}]{share}"

    def __repr__(self) -> str:
        return line(f"Difference({self.metric} {self})")


def _signed(value: float) -> str:
    """Three decimals with a sign, a true minus; nothing has none."""
    if math.isnan(value):
        return "undefined"
    shown = f"{value:+.3f}"
    return "0.000" if float(shown) == 0 else shown.replace("-", "\N{MINUS SIGN}")
