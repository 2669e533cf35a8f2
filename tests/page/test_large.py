"""A model of 48 layers of 32 heads: the page stays small enough, and a step touches few cells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from headcount.heads import Layout
from headcount.views.page.report import report
from page.chromium import Browser, Page
from page.made import attention, study

LAYERS, WIDTH = 48, 32
TOKENS = 300
LARGEST = 8_000_000
SLOWEST = 100.0
"""Milliseconds of a step of the slider, at the median."""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    study(
        folder,
        Layout.of(encoder=[WIDTH] * LAYERS),
        seeds=1,
        matrices=("random",),
        distances=("js",),
    )
    return report(folder, out=folder.parent / "large.html").out


@pytest.fixture(scope="module")
def page(browser: Browser, large: Path) -> Iterator[Page]:
    opened = browser.open(large)
    opened.wait("document.querySelector('.headgrid').width > 300")
    yield opened
    assert opened.complaints() == []
    opened.close()


def test_the_file_is_small_enough(large: Path) -> None:
    assert large.stat().st_size < LARGEST


def test_one_step_draws_the_cell_that_changes(page: Page) -> None:
    heads = LAYERS * WIDTH
    assert page.run("headcount.shown().heads.length") == heads
    steps = page.run(
        "(() => { headcount.go(400); const found = []; for (let at = 401; at < 461; at++) {"
        "const before = headcount.stats.cells, draws = headcount.stats.draws; headcount.go(at);"
        "found.push([headcount.stats.cells - before, headcount.stats.draws - draws,"
        "headcount.stats.step]); } return found; })()"
    )
    assert [step[:2] for step in steps] == [[1, 1]] * 60
    times = sorted(step[2] for step in steps)
    print(f"\na step of the slider at {heads} heads: median {times[30]:.1f} ms, "  # noqa: T201
          f"largest {times[-1]:.1f} ms")  # fmt: skip
    assert times[30] < SLOWEST


def test_picking_redraws_two_cells_of_the_grid(page: Page) -> None:
    page.run("headcount.pick(0)")
    page.run("document.querySelector('.headgrid').focus()")
    before = page.run("headcount.stats.cells")
    page.press("ArrowDown")
    assert page.run("headcount.stats.cells") - before == 2
    assert page.text("#card h3") == "Layer 1, head 0"


def test_hundreds_of_tokens_stay_usable(browser: Browser, tmp_path: Path) -> None:
    layout = Layout.of(encoder=[4, 4])
    folder = study(tmp_path / "study", layout, ratios=(0.5,), seeds=1)
    attention(folder / "attention", layout, "model", tokens=TOKENS)
    page = browser.open(report(folder, out=tmp_path / "long.html").out, width=390)
    page.wait("document.querySelector('#attention') !== null")
    page.run("headcount.pick(1)")
    page.wait(f"document.querySelectorAll('#attention .token').length === {2 * TOKENS}")
    page.click("#attention .look:first-child .token:nth-of-type(251)")
    shown = page.run(
        "[...document.querySelectorAll('#attention .look:first-child .token')].map((e) => e.title)"
    )
    row = np.load(folder / "attention" / "attention.npz")["before/encoder.0.1/0"][250]
    most = np.argsort(-row.astype(float))[:10]
    np.testing.assert_allclose([float(shown[at]) for at in most], row[most], atol=0.0026)
    assert page.run("document.documentElement.scrollWidth") <= 390
    assert page.complaints() == []
    page.close()
