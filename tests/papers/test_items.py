from __future__ import annotations

from pathlib import Path

import pytest

from headcount.base.errors import UsageError
from headcount.papers.claims import read_claims
from headcount.papers.items import ROOMS, get_item, read_items, require_scale
from headcount.papers.numbers import PAPERS
from headcount.papers.scales import SCALES, groups_of
from papers.filled import filled

FILES = {
    ("autoattention", "figure-3"),
    ("autoattention", "figure-4"),
    ("autoattention", "figure-5"),
}
"""Items that open models or traces: tests/papers/test_figures_gates.py."""
ALIKE = {("redundancy", f"figure-{number}") for number in (2, *range(11, 18), 19, 20)}
"""Items that differ from another one in their inputs only."""
DRAWN = [key for key in read_items() if key not in FILES | ALIKE]


def test_every_table_and_figure_is_there():
    names = set(read_items())
    assert len(names) >= 45
    for paper, tables, figures in (
        ("redundancy", (), range(1, 21)),
        ("weak-link", range(1, 7), range(1, 3)),
        ("autoattention", range(1, 4), range(2, 8)),
        ("lay-off", (), range(1, 7)),
    ):
        wanted = {f"table-{number}" for number in tables} | {
            f"figure-{number}" for number in figures
        }
        assert wanted <= {name for of, name in names if of == paper}


@pytest.mark.parametrize("scale", SCALES)
def test_items_are_drawn_from_groups_of_the_scale(scale: str):
    known = set(groups_of("pocket"))
    needed = {group for item in read_items().values() for group in item.groups}
    assert needed <= known
    assert [item for item in read_items().values() if scale in item.scales]


def test_every_claim_has_an_item_that_tests_it():
    every = {code for item in read_items().values() for code in item.claims}
    assert every == set(read_claims())


@pytest.mark.parametrize(("paper", "item"), DRAWN)
def test_every_item_is_drawn(paper: str, item: str, tmp_path: Path):
    finished = get_item(paper, item)
    drawn = finished.draw(filled(tmp_path, *finished.groups))
    assert drawn.sheets
    for sheet in drawn.sheets:
        assert sheet.rows, sheet.title
        assert {len(row) for row in sheet.cells()} == {len(sheet.columns)}
        assert any(cell for row in sheet.cells() for cell in row[1:]), sheet.title


@pytest.mark.parametrize("name", ["Table 4", "table4", "TABLE-4", "tab.4"])
def test_names_are_understood(name: str):
    assert get_item("weak-link", name).name == "table-4"


@pytest.mark.parametrize(
    ("paper", "item", "message"),
    [
        ("weaklink", "table-4", "Did you mean 'weak-link'"),
        ("weak-link", "table-44", "Did you mean 'table-4'"),
        ("lay-off", "frozn", "Did you mean 'frozen'"),
    ],
)
def test_wrong_names_have_a_suggestion(paper: str, item: str, message: str):
    with pytest.raises(UsageError, match=message):
        get_item(paper, item)


def test_a_scale_without_runs_is_refused():
    item = get_item("weak-link", "grid")
    with pytest.raises(UsageError, match="has no runs at the scale 'none', only at: pocket"):
        require_scale(item, "none")


def test_every_paper_has_a_room():
    assert set(ROOMS) == set(PAPERS)


def test_groups_of_one_scale_come_along_there():
    items = [item for item in read_items().values() if item.also]
    assert {group for item in items for group in item.also} <= {
        *groups_of("paper"),
        *groups_of("small"),
    }
    assert len(items) > 10
    for item in items:
        assert set(item.also) <= set(item.needs)
        assert not set(item.also) & set(item.groups)  # it is drawn without them elsewhere
