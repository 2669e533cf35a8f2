"""Values out of files: what is no number is none, what is packed comes back."""

from __future__ import annotations

import base64
import math
import zlib
from dataclasses import dataclass

import numpy as np
import pytest

from headcount.heads import Layout, Mask
from headcount.views.page.reading import (
    Interval,
    Packed,
    bits,
    by_head,
    fill,
    interval,
    number,
    packed,
    plain,
    quantised,
    short_name,
    text,
)


@pytest.mark.parametrize(
    ("value", "read"),
    [(1, 1), (0.5, 0.5), (np.float32(2), 2), (True, None), ("1", None), (float("nan"), None)],
)
def test_numbers(value: object, read: float | None) -> None:
    assert number(value) == read


def test_the_middle_of_an_interval_has_several_names() -> None:
    for name in ("value", "score", "mean", "median"):
        assert interval({name: 1, "low": 0, "high": 2}) == Interval(1, 0, 2)
    assert interval(None) is None
    assert not Interval(None)


@dataclass(frozen=True)
class Row:
    name: str
    size: float | None
    loss: Interval | None
    good: bool
    kept: int = 0


def test_a_row_is_read_as_its_type_says() -> None:
    row = {"name": "a\x1b", "size": "no number", "loss": {"value": 1.0}, "good": 1, "more": 3}
    assert fill(Row, row, kept=4) == Row("a\\x1b", None, Interval(1.0), True, 4)
    assert fill(Row, {}, kept=0) == Row("", None, None, False)


def test_all_that_goes_into_the_page_is_safe() -> None:
    data = {
        "\x1b": [Row("\u202e", math.nan, Interval(math.inf), True)],
        "packed": Packed("A" * 99_999),
    }
    assert plain(data) == {
        "\\x1b": [{
            "name": "\\u202e", "size": None, "good": True, "kept": 0,
            "loss": {"value": None, "low": None, "high": None},
        }],
        "packed": "A" * 99_999,
    }  # fmt: skip
    assert len(plain("a" * 99_999)) == 20_000


def test_text_commands_no_terminal_and_is_not_long() -> None:
    assert text("a\x1b[31m") == "a\\x1b[31m"
    assert len(text("a" * 1000)) == 60


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("./runs/base/", "base"),
        ("org/bert", "bert"),
        ({"kind": "train", "model": "a/b"}, "train of b"),
    ],
)
def test_short_names(model: object, name: str) -> None:
    assert short_name(model) == name


def test_bits_say_which_heads_stay() -> None:
    layout = Layout.of(encoder=[3, 3])
    mask = Mask.of(layout, [("encoder", 0, 0), ("encoder", 1, 2)])
    assert bits(mask) == "84"  # 1000 01(00)
    flags = bin(int(bits(mask), 16))[2:].zfill(8)[:6]
    assert [flag == "1" for flag in flags] == [head in mask.kept for head in layout]


def test_packed_is_deflated_little_endian() -> None:
    raw = zlib.decompress(base64.b64decode(packed([1, 515], "u2")))
    assert list(raw) == [1, 0, 3, 2]


@pytest.mark.parametrize(("wide", "steps", "kind"), [(True, 65535, "<u2"), (False, 255, "u1")])
def test_quantised_numbers_are_off_by_half_a_step(wide: bool, steps: int, kind: str) -> None:
    values = np.random.default_rng(0).normal(size=500)
    made = quantised(values, wide=wide)
    raw = np.frombuffer(zlib.decompress(base64.b64decode(made.data)), kind)
    back = made.low + raw * made.scale
    assert np.abs(back - values).max() <= (values.max() - values.min()) / steps / 2 + 1e-12
    assert quantised(np.zeros(3), wide=wide).scale == 1.0


def test_by_head_follows_the_layout() -> None:
    layout = Layout.of(encoder=[2], decoder=[1])
    assert by_head({"decoder": [[3.0]], "encoder": [[1.0, None]]}, layout) == [1.0, None, 3.0]
