from __future__ import annotations

from pathlib import Path

from models.zoo import FAMILIES

PAGE = Path(__file__).parents[2] / "docs" / "architectures.md"


def test_the_page_lists_every_family_of_the_zoo_and_no_wrong_ones():
    text = PAGE.read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    listed = {row[0].strip("| "): row for row in rows}
    assert set(FAMILIES) <= set(listed)
    assert all(listed[family][4] == "exact" for family in FAMILIES)
    assert " 0 come out wrong" in text
