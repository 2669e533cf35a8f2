"""The papers' claims: what each says, and a test of it from finished runs.

    verdict = judge(CLAIMS["LO1"], found)       # holds, does not hold, undecided, or not run

A claim is undecided where the interval of its statistic includes both sides of its threshold.
`data/claims.yaml` has the words, the files `claims_*.py` have the tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from headcount.base.files import read_text
from headcount.base.options import defined
from headcount.papers.finished import PaperRuns

Word = Literal["holds", "does not hold", "undecided", "not run"]
ROOMS = (
    "claims_clusters",
    "claims_drift",
    "claims_dropout",
    "claims_gates",
    "claims_layers",
    "claims_layoff",
    "claims_redundancy",
    "claims_weak_link",
)
"""Where the tests are; a file adds its own when it is imported."""
WORDS: tuple[Word, ...] = ("holds", "does not hold", "undecided", "not run")


@dataclass(frozen=True, kw_only=True)
class TestedStatistic:
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

    def to_json(self) -> dict[str, Any]:
        """A plain dict; what is not a number is None."""
        return defined(dict(vars(self)))


Test = Callable[[PaperRuns], Sequence[TestedStatistic]]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a paper says, in our words."""

    code: str
    paper: str
    says: str
    statistic: str
    threshold: str
    origin: Literal["paper", "ours"]
    section: str
    items: tuple[str, ...]
    ambiguous: str = ""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What finished runs say of a claim."""

    claim: Claim
    scale: str
    tested: Sequence[TestedStatistic]
    """The claim's own statistic first, then others that bear on it."""
    done: int
    total: int
    """Runs behind it that are done, of those that are needed."""
    groups: tuple[str, ...] = ()

    @property
    def word(self) -> Word:
        """The verdict: that of the first statistic."""
        return self.tested[0].verdict if self.tested else "not run"

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        about = vars(self.claim) | {"items": list(self.claim.items)}
        return about | {
            "scale": self.scale, "verdict": self.word, "done": self.done, "total": self.total,
            "tested": [each.to_json() for each in self.tested],
        }  # fmt: skip


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
    import yaml

    path = Path(__file__).parent / "data" / "claims.yaml"
    data = yaml.safe_load(read_text(path, "claims"))
    return {
        code: Claim(code=code, **(each | {"items": tuple(each["items"])}))
        for code, each in data.items()
    }


def groups_of_claim(code: str) -> tuple[str, ...]:
    """The groups of runs that a claim is tested on."""
    return _tests()[code][0]


def judge(claim: Claim, found: PaperRuns, scale: str) -> Verdict:
    """Test a claim on the runs that are done; not run while one of its runs is missing."""
    if claim.code not in found.judged:
        groups, test = _tests()[claim.code]
        done, total = found.count(groups)
        found.judged[claim.code] = Verdict(
            claim=claim, scale=scale, tested=test(found) if found.is_whole(groups) else (),
            done=done, total=total, groups=groups,
        )  # fmt: skip
    return found.judged[claim.code]


def _tests() -> Mapping[str, tuple[tuple[str, ...], Test]]:
    for name in ROOMS:
        import_module(f"headcount.papers.{name}")
    return _TESTS


def above(value: float, low: float, high: float, threshold: float) -> Word:
    """Whether an interval is on the upper side of a threshold, on the lower, or includes it."""
    if math.isnan(low) or math.isnan(high):
        return "undecided"
    if low >= threshold and value >= threshold:
        return "holds"
    return "does not hold" if high < threshold else "undecided"


def below(value: float, low: float, high: float, threshold: float) -> Word:
    """Whether an interval is on the lower side of a threshold."""
    if math.isnan(low) or math.isnan(high):
        return "undecided"
    if high <= threshold and value <= threshold:
        return "holds"
    return "does not hold" if low > threshold else "undecided"


def worst(words: Sequence[Word]) -> Word:
    """The verdict on a claim that says something of every one of several."""
    for word in ("not run", "does not hold", "undecided"):
        if word in words:
            return word
    return "holds"
