from __future__ import annotations

import math

from headcount.runs.notes import not_better, rows_sentence, seen_rows


def test_rows_that_are_seen_and_scored():
    rows = {"calibration": {"split": "train"}, "evaluation": {"split": "train"}}
    assert "calibration are of train" in (seen_rows(rows) or "")
    assert seen_rows(rows | {"evaluation": {"split": "dev"}}) is None
    assert "train" not in (seen_rows(rows | {"evaluation": {"split": "dev"}}) or "")
    assert seen_rows(rows | {"evaluation": {"split": "all"}}) is not None
    assert "of train" in (seen_rows(rows | {"evaluation": {"split": "train:held-out:0.5:0"}}) or "")


def test_less_perplexity_is_better_than_random():
    assert not_better(10.0, [12.0, 11.0], "perplexity") is None
    assert "not better than random" in (not_better(12.0, [10.0, 11.0], "perplexity") or "")
    assert "undefined" in (not_better(math.nan, [0.5], "f1") or "")


def test_given_rows_in_a_sentence():
    given = {"split": "given", "n": None, "seed": None}
    assert rows_sentence({"repair": given}) == "Repaired on rows that were given."
    assert rows_sentence({}) == ""
