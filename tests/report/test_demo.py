from __future__ import annotations

from typing import Any

from headcount.report.demo import page, summary


def record(score: float) -> dict[str, Any]:
    one = {"score": score, "low": score - 0.1, "high": score + 0.1}
    return {
        "scores": {"metric": "accuracy", "before": one | {"score": 0.9}, "after": one},
        "parameters": {"before": 2_000_000, "after": 1_500_000},
        "heads": {"before": 48, "after": 24},
    }


def test_before_and_after_are_one_table() -> None:
    lines = summary(record(0.6), record(0.8)).splitlines()
    assert len(lines) == 5
    assert len({len(line) for line in lines}) == 1
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == ["", "heads", "parameters", "accuracy", "interval"]
    assert cells[2][:4] == ["all heads", "48", "2.00 M", "0.900"]
    assert cells[4] == ["half by cluster", "24", "1.50 M", "0.800", "0.700 to 0.900"]


def test_the_report_shows_only_figures_that_are_there() -> None:
    text = page("TABLE", ["headcount ls", "headcount doctor"], figure=False)
    assert "TABLE" in text
    assert "headcount ls\nheadcount doctor" in text
    assert "heads.png" not in text
    assert "heads.png" in page("TABLE", [], figure=True)
