from __future__ import annotations

import math

from headcount.papers.numbers import read_paper
from headcount.papers.sheets import Sheet, Spread, printed_sheet, relative, shown, spread
from headcount.statistics import interval

SHEET = Sheet(
    title="T", columns=["a|b", "score"], rows=[["x", Spread((0.1, 0.3))], ["y", None]], note="N"
)


def test_a_spread_shows_its_mean_and_interval():
    mean, low, high = interval((0.1, 0.3))
    assert str(Spread((0.1, 0.3))) == f"{mean:.3f} [{low:.3f}, {high:.3f}]"
    assert str(Spread((0.25,))) == "0.250"
    assert Spread((0.25,)).to_json() == {"mean": 0.25, "low": None, "high": None, "seeds": 1}


def test_a_sheet_is_markdown_csv_and_plain_data():
    text = SHEET.to_markdown()
    assert text.startswith("**T**\n\n| a\\|b | score |\n| --- | --- |\n| x | 0.200 [")
    assert text.endswith("| y |  |\n\nN")
    assert SHEET.to_csv().splitlines()[0] == "a|b,score"
    assert SHEET.to_json()["rows"][0][1]["mean"] == 0.2


def test_scores_are_relative_seed_by_seed():
    assert relative({0: 0.4, 1: 0.6}, {0: 0.8, 1: 0.6}) == {0: 0.5, 1: 1.0}
    assert relative({3: 0.4}, {0: 0.8}) == {3: 0.5}
    assert relative({3: 0.4}, {0: 0.8, 1: 0.8}) == {}


def test_the_papers_numbers_stand_in_columns_of_their_tasks():
    printed, places = read_paper("weak-link").items["table-4"], [{"ratio": 0.0}, {"ratio": 0.33}]
    sheet = SHEET.beside(printed, places, "accuracy")
    papers = ["paper: mnli", "paper: qqp", "paper: qnli", "paper: sst2"]
    assert sheet.columns == ["a|b", "score", *papers]
    first, second = sheet.rows
    assert [number and number.value for number in first[2:]] == [83.69, 91.22, 91.66, 92.88]
    assert second == ["y", None, *[None] * 4]
    assert (sheet.title, sheet.note, first[:2]) == ("T", "N", SHEET.rows[0])


def test_a_row_of_one_task_has_the_numbers_of_that_task_only():
    printed = read_paper("weak-link").items["table-4"]
    sheet = SHEET.beside(printed, [{"ratio": 0.0, "task": "qqp"}, {"ratio": 0.33}])
    assert sheet.columns[2:] == ["paper: qqp"]
    assert [number and number.value for number in sheet.rows[0][2:]] == [91.22]


def test_all_that_a_paper_prints_is_a_sheet():
    sheet = printed_sheet(read_paper("weak-link").items["table-6"])
    assert sheet is not None
    assert len(sheet.rows) == 24
    assert printed_sheet(read_paper("redundancy").items["figure-1"]) is None


def test_what_is_undefined_is_blank():
    assert (shown(math.nan), shown(None), shown(0.5), spread({})) == ("", "", "0.500", None)
