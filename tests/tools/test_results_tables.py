"""The tables of docs/results.md hold what the study's summary holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.results_tables import main


def row(method: str, ratio: float, score: float, group: str = "mini") -> dict[str, object]:
    return {
        "group": group, "task": "cola", "kind": "prune", "method": method, "ratio": ratio,
        "score": score, "difference.low": score - 0.91, "difference.high": score - 0.89,
        "full": 0.9, "metric": "f1", "n": 250, "heads": 72, "kept": round(72 * (1 - ratio)),
    }  # fmt: skip


def test_methods_by_ratio_the_best_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row("a", 0.5, 0.8), row("a", 0.9, 0.7), row("b", 0.5, 0.85)]
    rows += [row("random", 0.5, 0.6, "mini-random"), row("a", 0.5, 0.1, "big")]
    rows += [{"group": "mini-base", "kind": "train", "score": 0.9}]
    (tmp_path / "table.json").write_text(json.dumps({"summary": rows}))
    main(tmp_path / "table.json", tmp_path / "picture.svg")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "**mini cola**: f1 on 250 rows, all 72 heads 0.900."
    assert lines[2:8] == [
        "| heads gone | 50 % | 90 % |",
        "|---|---|---|",
        "| heads kept | 36 | 7 |",
        "| b | 0.850<br>[−0.060, −0.040] |  |",
        "| a | 0.800<br>[−0.110, −0.090] | 0.700<br>[−0.210, −0.190] |",
        "| random | 0.600<br>[−0.310, −0.290] |  |",
    ]
    assert "**big cola**" in "\n".join(lines)
    assert "mini cola" in (tmp_path / "picture.svg").read_text(encoding="utf-8")
