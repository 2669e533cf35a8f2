"""Names that would be markup, several models in one page, and files that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headcount.heads import Layout
from headcount.views.page.report import report
from page.chromium import Browser, Page
from page.conftest import LAYOUT
from page.made import study

BAD = (
    "</script><script>window.bad = 1</script><img src=x onerror='window.bad = 2'>"
    "\"'&amp;<!--\x1b[31m\u202e${bad}</style>"
)
SHOWN = "\\x1b[31m\\u202e${bad}</style>"


def swap(folder: Path, word: str, other: str) -> None:
    """Write another name wherever a file has this one."""
    for path in folder.rglob("*.json"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(f'"{word}"', json.dumps(other)), encoding="utf-8")


@pytest.fixture(scope="module")
def hostile(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = study(tmp_path_factory.mktemp("hostile"), LAYOUT)
    for word in ("surgeon", "accuracy", "dev", "word1", "dog", "previous", "small"):
        swap(folder, word, BAD)
    for path in folder.rglob("*.json"):
        data = json.loads(path.read_text(encoding="utf-8"))
        for part in (data, data.get("run", {}), data.get("identity", {}), data.get("about", {})):
            for key in ("model", "task", "command", "pruned", "sentence", "text", "inputs"):
                if isinstance(part.get(key), str):
                    part[key] = BAD
        path.write_text(json.dumps(data), encoding="utf-8")
    page = browser.open(report(folder, out=folder.parent / "hostile.html").out)
    page.wait("document.querySelectorAll('.headgrid').length > 0")
    return page


def test_hostile_names_are_text(hostile: Page) -> None:
    page = hostile
    page.run("document.querySelector('.headgrid').focus()")
    page.press("ArrowDown", 2)
    page.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.wait("[...document.querySelectorAll('details')].every((each) => each.children.length > 1)")
    assert page.run("window.bad === undefined")
    assert page.run("document.querySelectorAll('img, iframe, object, embed').length") == 0
    assert page.run("document.querySelectorAll('script').length") == 2
    assert BAD[:40] in page.text("#sentence")
    assert SHOWN in page.text("#sentence")
    for part in ("#card", "#curve", "#results", "#attention", "#tests"):
        assert "<script>window.bad" in page.text(part), part
    assert "\x1b" not in page.run("document.getElementById('page').textContent")
    assert "\u202e" not in page.run("document.getElementById('page').textContent")
    assert page.complaints() == []
    assert page.requests() == []


def test_hostile_names_do_not_push_the_page_wider(hostile: Page) -> None:
    hostile.view(390)
    hostile.wait("document.querySelector('.headgrid').getBoundingClientRect().width < 360")
    assert hostile.run("document.documentElement.scrollWidth") <= 390


def test_several_models_are_kept_apart_by_a_chooser(browser: Browser, tmp_path: Path) -> None:
    decoder = Layout.from_json({"decoder": {"heads": [4, 4], "groups": [2, 2], "uses": [1, 1]}})
    study(tmp_path / "one", LAYOUT, model="first")
    study(tmp_path / "two", decoder, model="second", ratios=(0.5,), seeds=1)
    (tmp_path / "two" / "broken.json").write_text("{", encoding="utf-8")
    page = browser.open(report(tmp_path, out=tmp_path / "both.html").out)
    names = page.run("[...document.querySelectorAll('header option')].map((each) => each.text)")
    assert sorted(names) == ["first on task", "second on task"]
    page.choose("header select", str(names.index("second on task")))
    assert page.run("headcount.shown().heads.length") == 8
    page.run("headcount.go(4)")
    gone = page.run("[...headcount.shown().removed]")
    pairs = [gone[at : at + 2] for at in range(0, 8, 2)]
    left = sum(not all(pair) for pair in pairs)
    assert f"{left} of 4 key-value heads" in page.text(".figures")
    page.choose("header select", str(names.index("first on task")))
    assert page.run("headcount.shown().heads.length") == len(LAYOUT)
    page.click("footer summary")
    page.wait("document.querySelector('footer li') !== null")
    assert "broken.json" in page.text("footer")
    assert page.complaints() == []
    page.close()
