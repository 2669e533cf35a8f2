from __future__ import annotations

import io
import math

from rich.console import Console

from headcount.runs.prune_result import PruneResult
from headcount.views.tables.pruning import bars, chart, prune_table, signed, verdicts
from runs.whole import result

RECORD = {
    "method": "surgeon", "repair": [{"name": "recover"}], "rows_text": "Scored on 9 rows.",
    "heads": {"before": 12, "after": 6, "kept": "222"},
    "parameters": {"before": 2000, "after": 1000},
}  # fmt: skip
SCORE = {"score": 0.9, "low": 0.8, "high": 1.0, "n": 9}


def shown(table) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def test_without_a_task_there_are_no_scores():
    text = shown(prune_table(result(PruneResult, RECORD)))
    assert "surgeon, recovered" in text
    assert "222" in text
    assert "interval" not in text


def test_random_cuts_stand_beside():
    random = {"draws": 3, "mean": 0.5, "worst": 0.4, "best": 0.6}
    scores = {"metric": "f1", "before": SCORE, "after": SCORE, "lost": "0", "random": random}
    text = shown(prune_table(result(PruneResult, RECORD | {"scores": scores})))
    assert "random, mean of 3" in text
    assert "0.4000 to 0.6000" in text
    assert "Scored on 9 rows." in text


def row(method, verdict, comparisons=4, seeds_needed=None):
    found = {"verdict": verdict, "comparisons": comparisons, "seeds_needed": seeds_needed}
    return {"method": method, "against_random": found}


def test_what_is_told_apart_from_random_and_what_would_take():
    rows = [row("a", "alike", seeds_needed=1234), row("b", "better"), row("c", "worse"),
            row("d", "alike"), {"method": "random"}]  # fmt: skip
    assert verdicts(rows, "random", lambda each: each["method"]).splitlines() == [
        "Better than random: b.",
        "No measurable difference from random: a (1,234 seeds), d.",
        "Worse than random: c.",
        "Corrected for 4 comparisons (Holm); in brackets, the seeds it would take to show this "
        "difference.",
    ]
    assert verdicts(rows, "all-heads", lambda each: each["method"]) == ""
    (_, said) = verdicts([row("b", "better", 1)], "random", lambda each: "b").splitlines()
    assert said == "Corrected for 1 comparison (Holm)."
    said = verdicts([row("b", "alike", 0)], "random", lambda each: "b")
    assert said == "Not tested against random: that takes two seeds, and scores that are defined."


def test_a_difference_has_its_sign():
    assert signed({"mean": -0.003, "low": -0.011, "high": 0.004}, "f1").startswith("−0.003 [−0.011")


def drawn(*rows: tuple[str, float, float], full: float | None = 1.0) -> list[str]:
    file = io.StringIO()
    summary = [{"method": name, "ratio": ratio, "mean": mean} for name, ratio, mean in rows]
    Console(file=file, width=100, color_system=None).print(chart(full, summary))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_line_for_each_method() -> None:
    lines = drawn(("a", 0.5, 1.0), ("a", 0.9, 0.0), ("long", 0.9, 0.5))
    assert lines == [
        "      score from 0.0000 ▁ to 1.0000 █, heads removed from 50 % to 90 %",
        "a     ██▁▁",
        "long    ▅▅",
    ]


def test_what_is_not_known_is_blank() -> None:
    assert bars([math.nan, None, 3.0], 1.0, 3.0) == "  █"
    assert bars([2.0], 2.0, 2.0) == "▁"
    assert drawn(("a", 0.5, math.nan), full=None) in ([], [""])
