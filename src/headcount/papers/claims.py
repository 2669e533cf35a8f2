"""The papers' claims: what each says, and a test of it from finished runs.

    verdict = judge(read_claims()["LO1"], finished, "pocket")    # its word: holds, undecided, …

A claim is undecided where the interval of its statistic includes both sides of its threshold.
`data/claims.yaml` has the words, the files `claims_*.py` have the tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Literal, NamedTuple

from headcount.base.options import defined
from headcount.papers.finished import PaperRuns
from headcount.papers.numbers import read_data

Word = Literal["holds", "does not hold", "undecided", "not run"]
Law = Literal["t", "normal", "z", "log", "share", "most"]
"""How an interval narrows with more units: Student's over the units, with the root of their number
on the scale of the value, on Fisher's or on a logarithm's; exact of a share; by most of its parts.
"""
ROOMS = (
    "clusters",
    "dropout",
    "gates",
    "layers",
    "layoff",
    "redundancy",
    "translation",
    "weak_link",
)
"""Where the tests are, `claims_*.py`: a file adds its own when it is imported."""


@dataclass(frozen=True)
class Rule:
    """From a value and the ends of its interval to a verdict."""

    threshold: float
    decide: Callable[[float, float, float], Word]

    def __call__(self, value: float, low: float, high: float) -> Word:
        """The verdict."""
        return self.decide(value, low, high)


class Sampling(NamedTuple):
    """What an interval is over, and how it narrows with more of it."""

    unit: str
    n: int
    rule: Rule
    law: Law


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """One statistic of a claim with its interval, and what it says of the threshold."""

    what: str
    value: float
    low: float = math.nan
    high: float = math.nan
    verdict: Word
    seeds: int = 0
    """Seeds behind it; 0 where there is one run of each kind."""
    n: int = 0
    """Rows, inputs, heads or pairs behind it: `of` says which."""
    of: str = ""
    note: str = ""
    sampling: Sampling | None = None
    """What its interval is over; None where it has none."""
    parts: tuple[Statistic, ...] = ()
    """Those whose verdicts make up its own, where it is shown for several."""

    @property
    def interval(self) -> str:
        """`0.926 [0.908, 0.943]`; without ends where there are none."""
        known = self.low == self.low and self.high == self.high
        return f"{self.value:.3g}" + (f" [{self.low:.3g}, {self.high:.3g}]" if known else "")

    def to_json(self) -> dict[str, object]:
        """A plain dict; what is not a number is None."""
        return defined({k: v for k, v in vars(self).items() if k not in ("sampling", "parts")})


Test = Callable[[PaperRuns], Sequence[Statistic]]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a paper says, in our words."""

    code: str
    paper: str
    says: str
    short: str
    """The same in a few words."""
    statistic: str
    threshold: str
    origin: Literal["paper", "ours"]
    section: str
    items: tuple[str, ...]
    ambiguous: str = ""
    why: str = ""
    """What was found to be the cause where it does not hold; empty where none was tested."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What finished runs say of a claim."""

    claim: Claim
    scale: str
    tested: Sequence[Statistic]
    """The claim's own statistic first, then others that bear on it."""
    done: int
    total: int
    """Runs behind it that are done, of those that are needed."""

    @property
    def word(self) -> Word:
        """The verdict: that of the first statistic."""
        return self.tested[0].verdict if self.tested else "not run"

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        about = vars(self.claim) | {"items": list(self.claim.items)}
        return about | {
            "scale": self.scale,
            "verdict": self.word,
            "done": self.done,
            "total": self.total,
            "tested": [statistic.to_json() for statistic in self.tested],
        }


_TESTS: dict[str, tuple[tuple[str, ...], Test]] = {}


def tests(code: str, *groups: str) -> Callable[[Test], Test]:
    """The decorated function tests the claim of this code, from the runs of these groups."""

    def add(test: Test) -> Test:
        _TESTS[code] = (groups, test)
        return test

    return add


@cache
def read_claims() -> Mapping[str, Claim]:
    """Code -> claim, in the order of the papers."""
    return {
        code: Claim(code=code, **(claim | {"items": tuple(claim["items"])}))
        for code, claim in read_data("claims").items()
    }


def groups_of_claim(code: str) -> tuple[str, ...]:
    """The groups of runs that a claim is tested on."""
    return _test_of(code)[0]


def judge(claim: Claim, finished: PaperRuns, scale: str) -> Verdict:
    """Test a claim on the runs that are done; not run while one of its runs is missing."""
    if claim.code not in finished.verdicts:
        groups, test = _test_of(claim.code)
        done, total = finished.count(groups)
        tested = test(finished) if finished.is_whole(*groups) else ()
        finished.verdicts[claim.code] = Verdict(
            claim=claim, scale=scale, tested=tested, done=done, total=total
        )
    return finished.verdicts[claim.code]


def _test_of(code: str) -> tuple[tuple[str, ...], Test]:
    for name in ROOMS:
        import_module(f"headcount.papers.claims_{name}")
    return _TESTS[code]


def worst(words: Sequence[Word]) -> Word:
    """The verdict on a claim that says something of every one of several."""
    for word in ("not run", "does not hold", "undecided"):
        if word in words:
            return word
    return "holds"
