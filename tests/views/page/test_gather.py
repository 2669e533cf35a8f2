"""The data of the page is plain JSON with a part for each subject."""

from __future__ import annotations

import json
from pathlib import Path

from headcount.heads import Layout, Stack
from headcount.views.page.gather import gather
from headcount.views.page.reading import plain
from headcount.views.page.walk import walk
from page.made import record, study, write


def test_one_of_everything(files: Path) -> None:
    data = gather(walk([files]))
    (only,) = data.subjects
    empty = {name for name, part in vars(only).items() if not part}
    assert empty == {"scores"}
    assert data.skipped == []
    json.dumps(plain(data), allow_nan=False)


def test_heads_keep_the_numbers_they_had(tmp_path: Path) -> None:
    layout = Layout((Stack("encoder", (2, 1), (2, 1), (1, 1), ((1, 5), (7,))),))
    study(tmp_path, layout, ratios=(0.5,), seeds=1)
    (only,) = gather(walk([tmp_path])).subjects
    assert only.layout[0].numbers == [[1, 5], [7]]


def test_evaluations_are_results_too(tmp_path: Path) -> None:
    study(tmp_path, Layout.of(encoder=[2]), ratios=(0.5,), seeds=1)
    write(tmp_path / "evaluate.json", record(
        "evaluate", "model", "task", metric="accuracy", split="dev", score=0.8, low=0.7,
        high=0.9, n=9,
    ))  # fmt: skip
    (only,) = gather(walk([tmp_path])).subjects
    assert [(each.kind, each.score.value) for each in only.scores] == [("evaluate", 0.8)]


def test_parts_that_are_missing_are_left_out(tmp_path: Path) -> None:
    study(tmp_path, Layout.of(encoder=[2]), ratios=(0.5,), seeds=1)
    for name in ("search/search.json", "roles.json", "transfer.json", "bench.json"):
        (tmp_path / name).unlink()
    data = gather(walk([tmp_path]))
    assert data.skipped == []
    assert data.subjects[0].roles is None
