from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
from rich.console import Console

from behaviour.test_result import roles
from headcount.heads import Layout, Stack
from headcount.views.tables.roles import grid, roles_table


def shown(found: object, width: int = 120) -> str:
    console = Console(width=width, record=True, file=io.StringIO(), color_system=None)
    console.print(found)
    return console.export_text()


def test_the_grid_has_a_letter_for_each_head() -> None:
    found = roles(previous=[0.9, 0.1, 0.1, 0.8], first=[0.1, 0.9, 0.1, 0.1])
    assert [line.plain for line in grid(found)] == ["encoder 0  P F ·", "encoder 1  P"]


def test_a_removed_head_leaves_its_place_empty() -> None:
    layout = Layout((Stack("encoder", (2, 2), (2, 2), (1, 1), ((1, 3), (0, 1))),))
    found = roles(layout, previous=[0.9] * 4)
    assert [line.plain for line in grid(found)] == ["encoder 0    P   P", "encoder 1  P P"]


def test_the_page_says_who_has_most_of_a_role() -> None:
    values = np.array([0.1, 0.9, 0.1, np.nan])
    text = shown(roles_table(roles(induction=values)))
    assert "Model on 100 inputs (made up)" in text
    line = next(line for line in text.splitlines() if "induction" in line)
    assert line.split()[:5] == ["I", "induction", "1", "0.100", "encoder.0.1"]
    assert "0.900 [0.880, 0.920]" in line


def test_notes_tell_what_separates_and_where_tokens_are_few() -> None:
    found = roles()
    made = {"separators": {"encoder": "special"}, "tokens": 100, "unknowns": 385}
    object.__setattr__(found, "provenance", made)
    text = shown(roles_table(found))
    assert "Separators are special tokens." in text
    assert "100 tokens are few for replaceable shares of 385 unknowns" in text
    object.__setattr__(found, "provenance", made | {"tokens": 100_000})
    assert "are few" not in shown(roles_table(found))


def test_a_role_without_a_chance_is_shown() -> None:
    found = roles(previous=[0.9, 0.1, 0.1, 0.8])
    kept = {name: replace(each, chance=None) for name, each in found.quantities.items()}
    text = shown(roles_table(replace(found, quantities=kept)))
    line = next(line for line in text.splitlines() if "previous" in line)
    assert line.split()[3] == "-"
