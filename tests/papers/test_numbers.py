from __future__ import annotations

import pytest

from headcount.papers.numbers import PAPERS, read_paper


@pytest.mark.parametrize("paper", PAPERS)
def test_every_number_says_where_it_stands(paper: str):
    finished = read_paper(paper)
    assert finished.year >= 2020
    for name, item in finished.items.items():
        assert item.title, name
        for number in item.numbers:
            assert number.cell, name
            assert number.unit, name


@pytest.mark.parametrize(
    ("item", "at", "value"),
    [
        (("weak-link", "table-1"), {"task": "wmt-en-ru", "ratio": 0.25}, 29.59),
        (("weak-link", "table-4"), {"task": "mnli", "ratio": 0.0}, 83.69),
        (("weak-link", "table-6"), {"task": "qqp", "layers": "top:6"}, 90.52),
        (("autoattention", "table-1"), {"task": "qqp", "method": "all-heads"}, 91.2),
    ],
)
def test_numbers_are_found_by_their_place(item: tuple[str, str], at: dict, value: float):
    finished = read_paper(item[0]).items[item[1]].where(**at)
    assert finished[0].value == value


def test_shares_are_the_same_when_they_round_to_the_same_per_cent():
    printed = read_paper("weak-link").items["table-1"]
    assert printed.where("bleu", task="wmt-en-ru", ratio=0.604) == printed.where(
        "bleu", task="wmt-en-ru", ratio=0.6
    )
    assert not printed.where("bleu", task="wmt-en-ru", ratio=0.62)


def test_a_limit_shows_as_one():
    number = read_paper("weak-link").items["figure-1"].where(ratio=0.6)[0]
    assert str(number) == "≤0.15"
