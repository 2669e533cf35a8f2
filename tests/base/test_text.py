from __future__ import annotations

import json

import pytest

from headcount.base.text import printable, printable_json, without_paths


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ä 日本 👩‍🚀 $x$", "plain, ä 日本 👩‍🚀 $x$"),
        ("\x1b[2J\x07", r"\x1b[2J\x07"),
        ("\x9b31m\x7f", r"\x9b31m\x7f"),
        ("a\u202eb\u2066", r"a\u202eb\u2066"),
        ("\ud800\uffff", r"\ud800\uffff"),
        ("two\nlines\t\r", r"two\x0alines\x09\x0d"),
    ],
)
def test_what_commands_a_terminal_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(text).encode() == shown.encode()


def test_line_ends_stay_where_lines_are_meant() -> None:
    assert printable("two\nlines\r\x1b", lines=True) == "two\nlines\\x0d\\x1b"


def test_json_holds_the_same() -> None:
    data = {"a": "\x1b\x9b\u202e\ud800\u2028 ä", "b": ["\n"]}
    text = printable_json(json.dumps(data, ensure_ascii=False, indent=2))
    assert json.loads(text) == data
    assert text == printable(text, lines=True)
    assert "ä" in text


def test_commands_keep_their_names_and_lose_their_paths() -> None:
    said = without_paths("headcount prune '/home/me/my run' --out=~/x/half ../a/b 'unclosed")
    assert "/home" not in said
    assert "~" not in said
    assert without_paths("headcount prune org/name --ratio 0.5").endswith("org/name --ratio 0.5")
