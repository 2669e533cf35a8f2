from __future__ import annotations

import ast
from pathlib import Path

from tools.count import banned_names, count_source


def test_what_binds_a_name_of_the_ban_list_is_counted() -> None:
    text = "found = 1\ndef f(how, *, each=found): self.own = how\nfor made in place: print(told)"
    assert banned_names(ast.parse(text)) == ["found", "made", "how", "each"]


def test_a_folder_of_source_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "from typing import Any\nclass A: x: Any\nsaid = [1]  # fmt: skip\n"
    )
    (tmp_path / "b.py").write_text("class A: pass\nclass _B: pass\nclass _B: pass\n")
    assert count_source(tmp_path) == {
        "source lines": 6,
        "fmt: skip": 1,
        "plain names of the ban list": 1,
        "Any": 1,
        "class names with two meanings": 1,
    }
