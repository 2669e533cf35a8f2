from __future__ import annotations

from rich.console import Console

from headcount.report.tables.cuts import not_better_than_random, prune_table, signed

RECORD = {
    "method": "surgeon", "recover": True, "finetune": None, "rows_said": "Scored on 9 rows.",
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
    text = shown(prune_table(RECORD))
    assert "surgeon, recovered" in text
    assert "222" in text
    assert "interval" not in text


def test_random_cuts_stand_beside():
    random = {"draws": 3, "mean": 0.5, "worst": 0.4, "best": 0.6}
    scores = {"metric": "f1", "before": SCORE, "after": SCORE, "lost": "0", "random": random}
    text = shown(prune_table(RECORD | {"scores": scores}))
    assert "random, mean of 3" in text
    assert "0.4000 to 0.6000" in text
    assert "Scored on 9 rows." in text


def test_methods_that_random_cuts_are_as_good_as_are_named():
    rows = [{"method": "a", "than_random": "alike"}, {"method": "b", "than_random": "better"}]
    assert not_better_than_random(rows) == "Not shown to be better than random: a."
    assert not_better_than_random(rows[1:]) == ""


def test_a_difference_has_its_sign():
    assert signed({"mean": -0.003, "low": -0.011, "high": 0.004}, "f1").startswith("−0.003 [−0.011")
