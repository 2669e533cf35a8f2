"""A page of files that the commands themselves wrote, opened in a real browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from headcount.heads import Mask
from headcount.models.shipped import locate
from page.chromium import Browser
from page.study import commands
from training.conftest import tiny


def test_a_small_study_from_end_to_end(
    cli: Callable[..., Any], browser: Browser, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    tiny(tokenizer).save_pretrained(model)
    tokenizer.save_pretrained(model)
    folder = tmp_path / "study"
    for line in commands(folder, str(model), small=True):
        ran = cli(*line)
        assert ran.code == 0, (line, ran.err)
    assert "left out" not in ran.err
    page = browser.open(folder / "report.html")
    page.wait("document.querySelectorAll('.headgrid').length > 0")
    assert page.texts("nav a") == [
        "Heads", "Curves", "Redundancy", "Attention", "Fine-tuning", "Gates", "Results",
    ]  # fmt: skip
    figures = page.run("[...document.querySelectorAll('figure')].map((each) => each.id)")
    assert {"compare-compare", "sweep", "tests", "raster"} <= set(figures)
    record = json.loads((folder / "pruned" / "record.json").read_text())
    mask = Mask.from_json(record["mask"])
    shown = page.texts("#results tbody tr")
    assert sum(mask.pattern in row for row in shown) >= 1
    assert any(
        f"{record['scores']['after']['score']:.4f}".replace("-", "−") in row for row in shown
    )
    page.run("document.querySelector('.headgrid').focus()")
    page.press("ArrowDown", 2)
    page.wait("document.querySelectorAll('#attention .token').length > 8")
    page.wait("document.querySelectorAll('#card .examples .pair').length > 0")
    page.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.settle()
    assert page.complaints() == []
    assert page.requests() == []
    page.close()


def test_a_search_alone_gives_a_full_page(
    cli: Callable[..., Any], browser: Browser, tmp_path: Path
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    tiny(tokenizer).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    few = ("--limit", "24", "--calibration-samples", "16", "--bootstrap", "40", "--seeds", "1")
    line = ("--task", "pocket-sentiment", *few, "--baseline", "1", "--repeats", "6")
    ran = cli("search", tmp_path / "model", *line, "--timing-seconds", "0", "--max-drop", "30%",
              "--out", tmp_path / "s")  # fmt: skip
    assert ran.code == 0, ran.err
    assert cli("report", tmp_path / "s", "--out", tmp_path / "s.html").code == 0
    page = browser.open(tmp_path / "s.html")
    page.wait("document.querySelectorAll('#card .strip').length > 0")
    assert page.texts("nav a") == ["Heads", "Curves", "Attention", "Cost", "Results"]
    names = page.texts("#card .strip .name")
    for name in ("importance", "replaceable share", "previous token"):
        assert any(each.startswith(name) for each in names), names
    assert len(page.texts("#card .examples .pair")) > 0
    page.wait("document.querySelectorAll('#attention .token').length > 2")
    figures = page.run("[...document.querySelectorAll('figure')].map((each) => each.id)")
    assert {"grid", "scatter", "curve", "tried", "attention", "results"} <= set(figures)
    assert page.complaints() == []
    page.close()
