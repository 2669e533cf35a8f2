from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest

from headcount.papers.claims import Statistic, groups_of_claim, judge, read_claims, worst
from headcount.papers.estimates import at_least, at_most
from headcount.papers.finished import PaperRuns
from headcount.papers.scales import groups_of
from papers.filled import filled


def test_all_claims_have_words_a_threshold_and_a_test():
    claims = read_claims()
    assert len(claims) == 36
    for code, claim in claims.items():
        assert claim.says
        assert claim.threshold
        assert claim.origin in ("paper", "ours")
        assert set(groups_of_claim(code)) <= set(groups_of("pocket")), code


@pytest.mark.parametrize(
    ("value", "low", "high", "over", "under"),
    [
        (0.9, 0.8, 1.0, "holds", "does not hold"),
        (0.5, 0.4, 0.6, "does not hold", "holds"),
        (0.7, 0.6, 0.8, "undecided", "undecided"),
        (0.7, math.nan, math.nan, "undecided", "undecided"),
    ],
)
def test_a_verdict_is_on_which_side_the_interval_lies(
    value: float, low: float, high: float, over: str, under: str
):
    assert (at_least(0.7)(value, low, high), at_most(0.7)(value, low, high)) == (over, under)


def test_a_claim_about_every_one_of_several_is_as_good_as_the_worst():
    assert worst(["holds", "holds"]) == "holds"
    assert worst(["holds", "undecided"]) == "undecided"
    assert worst(["undecided", "does not hold", "holds"]) == "does not hold"


def test_a_claim_is_not_run_while_a_run_is_missing(tmp_path: Path):
    finished = filled(tmp_path, "tuned", "random")
    whole = judge(read_claims()["WL4"], finished, "pocket")
    assert whole.word == "does not hold"
    assert whole.done == whole.total == 36
    shutil.rmtree(finished.runs("random", ratio=0.9)[0].folder)
    part = judge(read_claims()["WL4"], PaperRuns(finished.plan, finished.folder), "pocket")
    assert (part.word, part.done, part.tested) == ("not run", 35, ())
    assert part.to_json()["verdict"] == "not run"


def test_what_is_not_a_number_is_null():
    plain = Statistic(what="w", value=1.0, verdict="holds").to_json()
    assert (plain["value"], plain["low"], plain["verdict"]) == (1.0, None, "holds")
