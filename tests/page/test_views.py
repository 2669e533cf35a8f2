"""Every view of the page, used in a real browser: what it shows is what the files say."""

from __future__ import annotations

import csv
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headcount.base.text import without_paths
from headcount.heads import Mask
from headcount.learned.trace import load_trace
from headcount.likeness.result import load_redundancy
from headcount.views.page.build import build
from headcount.views.page.gather import gather
from headcount.views.page.report import report
from headcount.views.page.walk import walk
from headcount.views.tables.amounts import parameters
from page.chromium import Browser, Page
from page.conftest import LAYOUT
from page.made import attention, cut, filed, study, write

HEADS = len(LAYOUT)
EDGE = 30
"""Pixels left of the first head of a grid."""


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def plain(text: str) -> str:
    return text.replace("−", "-")


def picked(page: Page) -> int | None:
    return page.run("headcount.shown().picked")


def numbers_of(page: Page, figure: str) -> list[list[str]]:
    """The rows of the table that a figure folds away."""
    page.run(f"document.querySelector('{figure} details').open = true")
    page.wait(f"document.querySelector('{figure} details table') !== null")
    return page.run(
        f"[...document.querySelectorAll('{figure} details tbody tr')]"
        ".map((row) => [...row.children].map((cell) => cell.innerText))"
    )


def records(folder: Path) -> list[dict[str, Any]]:
    return [read(path) for path in sorted(folder.rglob("runs/*/record.json"))]


def test_the_first_sentence_is_the_searchs(page: Page, files: Path) -> None:
    found = read(files / "search" / "search.json")
    assert page.text("#headline") == f"{found['kept']} of {found['heads']} heads are enough"
    assert page.texts(".tiles dt") == ["accuracy", "speed at 8 × 14 tokens", "parameters"]
    assert page.texts(".tiles b")[1] == "1.40 ×"
    assert without_paths(found["command"]) in page.text(".basis")
    page.click("header details summary")
    page.wait("document.querySelector('#sentence') !== null")
    assert page.text("#sentence") == found["sentence"]
    said = page.text("header details")
    assert "The bound was 2 %." in said
    assert "58.6 % of the parameters are left." in said
    assert "the estimate is from half of dev (held-out set, 500 rows), which selected" in said


def test_every_part_is_there(page: Page) -> None:
    assert page.texts("nav a") == [
        "Heads", "Curves", "Redundancy", "Attention", "Fine-tuning", "Gates", "Cost", "Results",
    ]  # fmt: skip
    figures = page.run("[...document.querySelectorAll('figure')].map((each) => each.id)")
    assert {"grid", "scatter", "curve", "compare-compare", "sweep", "tests", "tried"} <= set(
        figures
    )
    assert {"matrix", "gap", "tree", "agreement", "attention",
            "transfer", "driftimportance", "recall", "gates", "raster", "cost",
            "results"} <= set(figures)  # fmt: skip


def test_the_page_opens_with_the_card_of_the_strongest_head(
    browser: Browser, html: Path, files: Path
) -> None:
    opened = browser.open(html)
    opened.wait("document.querySelectorAll('#card .strip').length > 0")
    scores = np.array(read(files / "importance.json")["scores"]["encoder"])
    layer, index = np.unravel_index(scores.argmax(), scores.shape)
    assert opened.text("#card h3") == f"Layer {layer}, head {index}"
    assert f"rank 1 of {HEADS} heads" in opened.text("#card")
    assert opened.complaints() == []
    opened.close()


def test_the_card_follows_the_slider(page: Page) -> None:
    page.run("headcount.go(0)")
    page.run("headcount.pick(0)")
    assert page.text("#card .lead").endswith("Kept at the slider's position.")
    last = page.run("Number(document.getElementById('ratio').max)")
    page.run(f"headcount.go({last})")
    gone = page.run("headcount.shown().removed.indexOf(1)")
    page.run(f"headcount.pick({gone})")
    assert page.text("#card .lead").endswith("Removed at the slider's position.")
    page.run("headcount.go(0)")
    assert page.text("#card .lead").endswith("Kept at the slider's position.")


def test_arrow_keys_go_from_head_to_head(page: Page, files: Path) -> None:
    page.run("headcount.pick(0)")
    page.run("document.querySelector('.headgrid').focus()")
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"):
        page.press(key)
    place = picked(page)
    assert place == 1 * 6 + 3
    assert page.text("#card h3") == "Layer 1, head 3"
    assert "layer 1, head 3" in page.run("document.getElementById('live').textContent")
    page.press("Enter")
    assert page.run("document.activeElement.id") == "card"
    worth = read(files / "importance.json")["scores"]["encoder"][1][3]
    shown = page.run(
        "[...document.querySelectorAll('#card .strip')]"
        ".find((each) => each.innerText.startsWith('importance')).querySelector('b').innerText"
    )
    assert float(shown) == pytest.approx(worth, abs=6e-5)


def test_the_card_has_roles_neighbours_gate_and_examples(page: Page, files: Path) -> None:
    page.click(".headgrid", EDGE + 46 * 2.5, 34 * 0.5)
    assert picked(page) == 2
    roles = read(files / "roles.json")
    assert f"Role: {roles['roles'][2]}." in page.text("#card .lead")
    text = page.text("#card")
    for name in ("replaceable share", "loss when removed alone", "milliseconds", "drift in fine-"):
        assert name in text
    values = load_redundancy(files / "random.npz")["js"].values[2].copy()
    values[2] = np.inf
    page.wait("document.querySelector('#card .near dd button') !== null")
    first = page.texts("#card .near dd button")[0].split()
    nearest = int(values.argmin())
    assert first == [f"{nearest // 6}.{nearest % 6}", f"{values[nearest]:.3f}"]
    told = page.texts("#card .tokens")
    assert [text.split(",")[0] for text in told[::2]] == ["decile 10", "decile 5", "decile 1"]
    assert all(text.startswith("after pruning") for text in told[1::2])
    shaded = page.run(
        "[...document.querySelectorAll('#card .pair:first-of-type .tokens')]"
        ".map((row) => [...row.querySelectorAll('span[title]')].map((e) => [e.innerText, e.title]))"
    )
    assert shaded[0] == [["[CLS]", "0.100"], ["the", "0.300"], ["dog", "0.600"]]
    assert shaded[1] == [["dog", "0.200"], ["the", "0.700"]]
    trace = load_trace(files / "gated")
    page.wait("document.querySelector('#card .spark p') !== null")
    last = plain(page.text("#card .spark p")).split(" to ")[1].split()[0]
    assert float(last) == pytest.approx(trace.values[-1][2], abs=6e-5)


def test_colour_by_another_quantity(page: Page, files: Path) -> None:
    page.choose("#grid .choice select", "induction")
    values = read(files / "roles.json")["quantities"]["induction"]["values"]
    low, high = (float(each.split()[0]) for each in page.texts(".legend > span")[:2])
    assert low == pytest.approx(min(values), abs=6e-5)
    assert high == pytest.approx(max(values), abs=6e-5)
    rows = numbers_of(page, "#grid")
    assert len(rows) == HEADS
    page.choose("#grid .choice select", "importance")


def orders(page: Page) -> dict[str, str]:
    return dict(
        page.run(
            "[...document.querySelectorAll('.replay select option')].map((e) => [e.text, e.value])"
        )
    )


def test_the_slider_replays_what_the_records_say(page: Page, files: Path) -> None:
    page.choose(".replay select", orders(page)["surgeon, in curve, seed 0"])
    own = [
        each
        for each in records(files / "curve")
        if each["method"] == "surgeon" and not each["seed"]
    ]
    assert len(own) == 4
    for record in own:
        mask = Mask.from_json(record["mask"], LAYOUT)
        page.run(f"headcount.go({HEADS - len(mask)})")
        gone = page.run("[...headcount.shown().removed]")
        assert gone == [0 if head in mask.kept else 1 for head in LAYOUT]
        shown = plain(page.text(".figures"))
        after, lost = record["scores"]["after"], record["scores"]["difference"]
        assert f"{after['score']:.3f}" in shown
        assert f"[{after['low']:.3f}, {after['high']:.3f}]" in shown
        assert f"{lost['value']:+.3f}\n[{lost['low']:+.3f}, {lost['high']:+.3f}]" in shown
        assert parameters(record["parameters"]["after"]) in shown
    page.run(f"headcount.go({HEADS // 2})")
    assert "1.43 × as fast" in page.text(".figures")  # as the bench says it, not 0.70 × its time
    assert "7.0 ms" in page.text(".figures")


def test_the_slider_never_mixes_sets_of_rows(page: Page, files: Path) -> None:
    """A search scores what it tries on the selection set, what it selects on the held-out set."""
    page.choose(".replay select", orders(page)["surgeon, in search"])
    tried = {each["heads"]["after"]: each for each in records(files / "search")}
    held = read(files / "search" / "model" / "record.json")
    for kept, record in tried.items():
        page.run(f"headcount.go({HEADS - kept})")
        shown = plain(page.text(".figures"))
        lost, n = record["scores"]["difference"], record["scores"]["n"]
        bold = plain(page.texts(".figures dd b")[1])
        assert bold == f"{lost['value']:+.3f}"
        assert f"instead of {record['scores']['before']['score']:.3f}" in shown
        assert f"on {n} rows of dev (selection set)" in shown
        held_out = kept == held["heads"]["after"]
        assert ("on 500 rows of dev (held-out set)" in shown) == held_out
        if held_out:
            scores = held["scores"]
            assert f"{scores['after']['score']:.3f}" in shown
            assert f"instead of {scores['before']['score']:.3f}" in shown
    page.run("headcount.go(0)")
    assert page.texts(".figures dd b")[1] == "0"
    told = plain(page.text(".replay .rank"))
    assert "250 to 500 rows of dev (selection set)" in told
    assert "the bound, -0.019 (2 % of 0.950)" in told  # not of the held-out 0.900
    dots = "[...document.querySelectorAll('.track .dot')].length"
    assert page.run(dots) == 1 + len(tried)


def test_between_two_models_the_slider_says_so(page: Page) -> None:
    page.run("headcount.go(7)")
    assert page.run("headcount.shown().removed.reduce((one, other) => one + other)") == 7
    assert "interpolated between two measured models" in page.text(".figures")
    assert "≈" in page.text(".figures")


def test_the_slider_by_keyboard_and_buttons(page: Page) -> None:
    page.run("headcount.go(6)")
    page.run("document.getElementById('ratio').focus()")
    page.press("ArrowRight")
    assert page.texts(".figures dd b")[0] == f"{HEADS - 7} of {HEADS}"
    page.click(".jumps button:last-child")
    assert page.texts(".figures dd b")[0] == f"{HEADS - 12} of {HEADS}"
    page.click(".jumps button:nth-child(3)")  # now in the order of the search
    assert page.texts(".figures dd b")[0] == f"{HEADS - 18} of {HEADS}"
    page.click(".jumps button:first-child")
    assert page.texts(".figures dd b")[0] == f"{HEADS - 12} of {HEADS}"


def test_a_head_picked_anywhere_is_picked_everywhere(page: Page, files: Path) -> None:
    seen = []
    for figure in ("#scatter canvas", "#matrix canvas"):
        page.run(f"document.querySelector('{figure}').scrollIntoView({{block: 'center'}})")
        page.run(f"document.querySelector('{figure}').focus()")
        page.press("ArrowRight", 2)
        seen.append(picked(page))
        head = list(LAYOUT)[seen[-1] or 0]
        assert page.text("#card h3") == f"Layer {head.layer}, head {head.index}"
        assert page.run("document.querySelector('#attention select').value") == str(seen[-1])
    page.wait("document.querySelector('#raster canvas').height > 200")
    page.click("#raster canvas", 400, 12 * 9.5)
    assert picked(page) == 9
    page.click("#driftimportance circle.point")
    assert picked(page) == 0
    assert page.text("#card h3") == "Layer 0, head 0"


def test_the_matrix_is_the_files(page: Page, files: Path) -> None:
    page.wait("document.querySelector('#matrix canvas').width > 300")
    rows = numbers_of(page, "#matrix")
    values = load_redundancy(files / "random.npz")["js"].values
    apart = values + np.diag(np.full(HEADS, np.inf))
    assert [row[1] for row in rows] == [
        f"layer {at // 6}, head {at % 6}" for at in apart.argmin(1).tolist()
    ]
    np.testing.assert_allclose([float(row[2]) for row in rows], apart.min(1), atol=1e-4)
    page.choose("#matrix .tools .choice:nth-child(3) select", "cos")
    page.choose("#matrix .tools .choice:nth-child(4) select", "cluster")
    page.wait("document.querySelector('#matrix canvas').width > 300")
    assert "cos of every two heads of model (fine-tuned)" in page.text("#matrix .lead")
    gap = numbers_of(page, "#gap")
    assert sum(int(row[2]) for row in gap) == HEADS * (HEADS - 1) // 2
    assert len(page.run("[...document.querySelectorAll('#tree path')].map(() => 1)")) == 3


def test_curves_and_tests_are_the_studys(page: Page, files: Path) -> None:
    study = read(files / "curve" / "curve.json")
    rows = numbers_of(page, "#curve")
    assert [(row[0], int(row[1])) for row in rows] == [
        (row["method"], row["kept"]) for row in study["summary"]
    ]
    assert [float(row[2]) for row in rows] == pytest.approx(
        [row["mean"] for row in study["summary"]], abs=6e-5
    )
    assert {"random", "surgeon"} <= set(page.texts("#curve .u-label"))
    assert "accuracy: 1,000 rows of dev." in page.text("#curve .lead")
    page.choose("#curve .tools select", "1")
    chosen = "document.querySelector('#curve .tools select').selectedOptions[0].text"
    assert page.run(chosen) == "search"
    lead = page.text("#curve .lead")
    assert "minus that of all heads on the same rows: 250 to 500 rows of dev (selection" in lead
    own = [each["scores"] for each in records(files / "search")]
    rows = numbers_of(page, "#curve")
    assert sorted((plain(row[2]), row[5]) for row in rows) == sorted(
        (f"{each['difference']['value']:.4f}", f"{each['n']} rows of dev (selection set)")
        for each in own
    )


def test_grid_slider_curve_and_tables_count_the_heads_that_stay(page: Page, files: Path) -> None:
    page.choose(".replay select", orders(page)["surgeon, in curve, seed 0"])
    page.run("headcount.go(6)")
    kept = HEADS - 6
    assert page.run("headcount.shown().removed.filter((each) => !each).length") == kept
    assert page.texts(".figures dt")[0] == "Heads kept"
    assert page.texts(".figures dd b")[0] == f"{kept} of {HEADS}"
    aria = "document.getElementById('ratio').getAttribute('aria-valuetext')"
    assert page.run(aria) == f"{kept} of {HEADS} heads kept"
    studied = {row["kept"] for row in read(files / "curve" / "curve.json")["summary"]}
    assert page.texts(".replay .ends span") == ["all heads", f"{min(studied)} of {HEADS} kept"]
    page.choose("#curve .tools select", "0")
    assert {int(row[1]) for row in numbers_of(page, "#curve")} == studied
    assert f"{kept} of {HEADS} kept" in page.texts("#tests th")
    assert f"{kept} of {HEADS}" in {row.split("\t")[4] for row in page.texts("#results tbody tr")}
    assert not re.search(r"[0-9] %? ?removed", page.text("main"))


def test_paired_tests_are_the_studys_with_holms_correction(page: Page, files: Path) -> None:
    summary = read(files / "curve" / "curve.json")["summary"]
    told = [row["against_random"] for row in summary if "against_random" in row]
    cells = page.run(
        "[...document.querySelectorAll('#tests [aria-label=\"curve, against random heads\"] td')]"
        ".map((each) => each.innerText)"
    )
    signs = {"better": "▲", "worse": "▼", "alike": "≈"}
    assert [plain(cell) for cell in cells] == [
        f"{test['mean']:+.3f} {signs[test['verdict']]}" for test in told
    ]
    rows = numbers_of(page, "#tests")
    own = [row for row in rows if row[0] == "curve"]
    assert [row[7] for row in own] == [f"{test['p_corrected']:.3f}" for test in told]
    assert own[0][9] == "no measurable difference; would take 7 seeds"
    assert {row[3] for row in rows} == {"random heads", "all heads"}


LABELS = """[...document.querySelectorAll('main svg')].flatMap((svg) => {
  const box = svg.getBoundingClientRect();
  const labels = [...svg.querySelectorAll('text')].filter((each) => each.textContent)
    .map((each) => [each.firstChild.textContent, each.getBoundingClientRect()]);
  const cut = labels.filter(([, one]) => one.left < box.left - 2 || one.right > box.right + 2)
    .map(([text]) => `${text} is cut off`);
  const near = labels.flatMap(([text, one], at) => labels.slice(at + 1)
    .filter(([, other]) => Math.min(one.right, other.right) - Math.max(one.left, other.left) > 2 &&
      Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 3)
    .map(([other]) => `${text} lies on ${other}`));
  return [...cut, ...near];
})"""


@pytest.mark.parametrize("width", [390, 1280])
def test_labels_are_whole_and_do_not_lie_on_each_other(
    browser: Browser, html: Path, width: int
) -> None:
    opened = browser.open(html, width=width)
    opened.wait("document.querySelectorAll('main svg text').length > 20")
    assert opened.run(LABELS) == []
    opened.close()


def test_what_a_search_tried(page: Page, files: Path) -> None:
    tried = read(files / "search" / "search.json")["tried"]
    rows = page.texts("#tried tbody tr")
    assert len(rows) == len(tried)
    for row, each in zip(rows, tried, strict=True):
        assert row.split()[1] == str(each["kept"])
        assert row.endswith("accepted" if each["accepted"] else "rejected")
        assert f"{each['probability']:.2f}" in row


def test_methods_side_by_side_and_a_sweep(page: Page, files: Path) -> None:
    summary = read(files / "compare" / "compare.json")["summary"]
    rows = numbers_of(page, "#compare-compare")
    assert {row[0]: float(row[2]) for row in rows} == {
        row["method"]: row["mean"] for row in summary
    }
    spots = page.run(
        "[...document.querySelectorAll('#compare-compare circle')].map((e) => e.cx.baseVal.value)"
    )
    assert spots == sorted(spots, reverse=True)
    values = read(files / "sweep" / "sweep.json")["summary"]
    told = [(float(row[0]), float(row[1]), float(row[2])) for row in numbers_of(page, "#sweep")]
    assert told == [
        (each["value"], each["kept"], pytest.approx(each["score"]["mean"])) for each in values
    ]


def test_heads_by_role(page: Page, files: Path) -> None:
    page.choose("#grid .choice select", "role")
    roles = [role for role in read(files / "roles.json")["roles"] if role]
    legend = page.texts(".legend .kind")
    assert {text.split()[1]: int(text.split()[2]) for text in legend} == {
        role: roles.count(role) for role in roles
    }
    page.wait("document.querySelector('#grid details td:nth-child(4)').innerText === 'none'")
    told = [row[3] for row in numbers_of(page, "#grid")]
    assert told == [role or "none" for role in read(files / "roles.json")["roles"]]
    page.choose("#grid .choice select", "importance")


def test_the_phase_of_a_matrix_is_chosen(page: Page, files: Path) -> None:
    page.choose("#matrix .tools .choice:nth-child(3) select", "js")
    page.choose("#matrix .tools .choice:nth-child(1) select", "before (pre-trained)")
    page.wait("document.querySelector('#matrix canvas').width > 300")
    values = load_redundancy(files / "phase.npz")["js"].values
    apart = values + np.diag(np.full(HEADS, np.inf))
    rows = numbers_of(page, "#matrix")
    np.testing.assert_allclose([float(row[2]) for row in rows], apart.min(1), atol=1e-4)
    page.choose("#matrix .tools .choice:nth-child(1) select", "model (fine-tuned)")


def test_every_figure_has_its_command(page: Page) -> None:
    without = page.run(
        "[...document.querySelectorAll('figure')].filter((each) => ![...each.querySelectorAll("
        "'.foot summary')].some((e) => e.innerText === 'Command')).map((each) => each.id)"
    )
    assert without == []


def test_gates_and_drift_by_keyboard(page: Page) -> None:
    for figure in ("#raster canvas", "#driftimportance .dots"):
        page.run("headcount.pick(4)")
        page.run(f"document.querySelector('{figure}').focus()")
        page.press("ArrowDown")
        assert picked(page) == 5
        page.press("ArrowLeft")
        assert picked(page) == 4


def test_attention_over_a_picture(browser: Browser, tmp_path: Path) -> None:
    study(tmp_path / "study", LAYOUT)
    shutil.rmtree(tmp_path / "study" / "attention")
    attention(tmp_path / "study" / "attention", LAYOUT, "model", picture=True)
    opened = browser.open(report(tmp_path / "study", out=tmp_path / "page.html").out)
    opened.wait("document.querySelectorAll('#attention .look canvas').length === 2")
    opened.choose("#attention .tools select", "1")
    opened.wait("document.querySelectorAll('#attention .look canvas').length === 2")
    assert "Attention in an image" in opened.text("#attention figcaption")
    assert "mean distance 2 patches" in opened.text("#attention figcaption")
    with np.load(tmp_path / "study" / "attention" / "attention.npz") as file:
        maps = dict(file)
    values = maps["before/encoder.0.1/0"].astype(float)
    canvas = "#attention .look canvas"
    side = opened.run(f"document.querySelector('{canvas}').clientWidth") - 2
    opened.click(canvas, 2.5 * side / 4, 1.5 * side / 4)  # patch 1,2
    opened.settle()
    query = 1 + 4 + 2
    assert opened.run(
        "[...document.querySelectorAll('#attention .tools select')].at(-1).value"
    ) == str(query)
    said = opened.texts("#attention .look .map .rank")[0]
    assert said == f"{values[query, 0]:.2f} of it goes to [CLS], which has no place in the image."
    most = int(values[query, 1:].argmax())
    inks = opened.run(
        f"(() => {{ const c = document.querySelector('{canvas}'), s = {side};"
        "const all = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "const spot = (part) => Math.floor((part + 0.625) * s / 4);"
        "return [...Array(8).keys()].map((at) => 4 * (spot(Math.floor(at / 4)) * c.width"
        "+ spot(at % 4))).map((at) => [...all.slice(at, at + 3)]); })()"
    )
    pixels = maps["picture"].astype(float)
    for at, seen in enumerate(inks):
        below = pixels[(at // 4) * 4 + 2, (at % 4) * 4 + 2]
        glow = (np.array(seen) - 0.4 * below) / 0.6
        shades = np.array([[253, 231, 37], [68, 1, 84]])  # the highest and the lowest amount
        if at == most:
            np.testing.assert_allclose(glow, shades[0], atol=4)
        elif values[query, 1 + at] < 0.001:
            np.testing.assert_allclose(glow, shades[1], atol=25)
    opened.choose("#attention .tools label:last-child select", "0")
    drawn = "[...document.querySelectorAll('#attention .look .map .rank')]"
    opened.wait(f"{drawn}.length === 2 && {drawn}.every((each) => each.innerText)")
    assert f"{values[0, 0]:.2f} of it goes" in opened.texts("#attention .look .map .rank")[0]
    opened.choose("#attention .tools select", "2")
    assert "This head is removed." in opened.text("#attention")
    assert opened.complaints() == []
    assert opened.requests() == []
    opened.close()


def test_attention_of_a_word(page: Page, files: Path) -> None:
    page.choose("#attention .tools select", "1")
    page.wait("document.querySelectorAll('#attention .look .token').length === 18")
    page.click("#attention .token:nth-of-type(4)")
    shown = page.run(
        "[...document.querySelectorAll('#attention .look:first-child .token')].map((e) => e.title)"
    )
    maps = np.load(files / "attention" / "attention.npz")
    np.testing.assert_allclose(
        [float(each) for each in shown], maps["before/encoder.0.1/0"][3], atol=0.0026
    )
    page.choose("#attention .tools select", "2")
    assert "This head is removed." in page.text("#attention")


def test_changes_gates_and_cost_are_the_files(page: Page, files: Path) -> None:
    layers = read(files / "transfer.json")["drift"]["layers"]
    rows = numbers_of(page, "#transfer")
    assert [float(row[2]) for row in rows] == pytest.approx(
        [each["mean"] for each in layers], abs=1e-4
    )
    trace = load_trace(files / "gated")
    rows = numbers_of(page, "#gates")
    opened = {int(row[0]): row[1] for row in rows if row[1]}
    assert opened[1] == str(trace.opened[0])
    assert opened[50] == str(trace.opened[-1])
    timings = read(files / "bench.json")["timings"]
    rows = numbers_of(page, "#cost")
    assert [(row[0], float(row[2])) for row in rows] == [
        (each["name"], pytest.approx(each["speedup"]["median"], abs=0.006)) for each in timings
    ]
    recall = numbers_of(page, "#recall")
    assert recall == [["50 %", "0.200", "0.100"], ["90 %", "0.700", "0.400"]]


def test_results_are_sorted_and_taken_along(page: Page, files: Path, tmp_path: Path) -> None:
    every = records(files)
    assert (
        len(page.texts("#results tbody tr")) == len(every) + 5
    )  # the selected model, all heads 4 times
    said = page.texts("#results tbody td:nth-child(9)")
    assert all(
        re.fullmatch(r"[\d,]+ rows of dev( \((selection|held-out) set\))?", each) for each in said
    )
    assert sum("held-out" in each for each in said) == 2
    page.click("#results th:nth-child(5) button")
    page.click("#results th:nth-child(5) button")
    kept = [int(text.split()[0]) for text in page.texts("#results tbody td:nth-child(5)")]
    assert kept == sorted(kept)
    page.browser.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.click("#results .tools button")
    for _ in range(200):
        if found := list(tmp_path.glob("*.csv")):
            break
        page.run("new Promise((done) => setTimeout(done, 25))")
    with found[0].open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    told = {(row["method"], row["study"], row["seed"], row["kept"]): row["score"] for row in rows}
    for record in every:
        study = "curve" if record["id"][0] in "rs" else "search"
        key = (record["method"], study, str(record["seed"]), str(record["heads"]["after"]))
        assert float(told[key]) == record["scores"]["after"]["score"]


def test_every_fold_opens_and_has_something_in_it(page: Page) -> None:
    page.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.wait("[...document.querySelectorAll('details')].every((each) => each.children.length > 1)")
    commands = page.texts("details pre")
    assert len(commands) >= 6
    assert all(re.match("headcount ", each) for each in commands)


def test_everything_can_be_reached_by_keyboard(page: Page) -> None:
    ways = page.run(
        "[...document.querySelectorAll('a, button, select, input, "
        "summary, canvas[tabindex], .scroll')]"
        ".filter((each) => each.offsetParent !== null && each.tabIndex < 0).length"
    )
    assert ways == 0
    named = page.run(
        "[...document.querySelectorAll('canvas:not([aria-hidden]), svg[role=img], select, input')]"
        ".filter((each) => !each.getAttribute('aria-label') && !each.closest('label')"
        " && !each.closest('[role=img]')).length"
    )
    assert named == 0


def test_a_phone_and_a_dark_room(page: Page) -> None:
    light = page.run("getComputedStyle(document.body).backgroundColor")
    page.view(390, 800, dark=True)
    page.wait("document.querySelector('.headgrid').getBoundingClientRect().width < 360")
    assert page.run("document.documentElement.scrollWidth") <= 390
    assert page.run("getComputedStyle(document.body).backgroundColor") != light
    page.view(1280, 900)


def test_where_less_is_better_the_bound_lies_above(
    browser: Browser, files: Path, html: Path, tmp_path: Path
) -> None:
    data = gather(walk([files]))
    subject = replace(data.subjects[0], higher_is_better=False)
    data = replace(data, subjects=[subject])
    turned = tmp_path / "turned.html"
    turned.write_text(build(data), encoding="utf-8")
    sides, first = [], []
    for path in (html, turned):
        page = browser.open(path)
        page.wait("document.querySelector('.track .bound') !== null")
        y = "Number(document.querySelector('.track {}').getAttribute('{}'))"
        sides.append(page.run(y.format(".bound", "y1")) - page.run(y.format(".dot", "cy")))
        first.append(page.texts("#results tbody td:nth-child(7)")[0])
        page.close()
    assert sides[0] > 0 > sides[1]
    assert float(first[0].split()[0]) > float(first[1].split()[0])


def test_the_slider_starts_at_the_selected_model_beside_another_cut_of_its_size(
    browser: Browser, tmp_path: Path
) -> None:
    folder = study(tmp_path / "study", LAYOUT)
    kept = read(folder / "search" / "search.json")["kept"]
    other = Mask.of(LAYOUT, list(LAYOUT)[:kept])
    write(folder / "another" / "record.json", cut("model", "task", other, "surgeon", 0, "another"))
    page = browser.open(report(folder, out=tmp_path / "report.html").out)
    page.wait("document.querySelectorAll('.figures dd b').length > 1")
    assert page.texts(".figures dd b")[0] == f"{HEADS - kept} of {HEADS}"
    final = Mask.from_json(read(folder / "search" / "model" / "record.json")["mask"], LAYOUT)
    gone = page.run("[...headcount.shown().removed]")
    assert gone == [0 if head in final.kept else 1 for head in LAYOUT]
    page.close()


def test_the_folder_of_a_study_file(browser: Browser, tmp_path: Path) -> None:
    folder = filed(tmp_path / "methods", LAYOUT)
    page = browser.open(report(folder, out=tmp_path / "report.html").out)
    page.wait("document.querySelectorAll('.headgrid').length > 0")
    assert "base, trained on task" in page.text("header .kicker").lower()
    rows = numbers_of(page, "#compare-methods")
    assert {row[0] for row in rows} == {"random, samples 64", "random, samples 256", "surgeon"}
    assert {row[4] for row in rows} == {"3"}
    assert page.texts("#compare-methods details pre") == []
    assert len(page.texts("#results tbody tr")) == 9 + 3 + 1  # cuts, trainings, all heads
    assert page.complaints() == []
    page.close()


def test_a_reader_who_wants_no_motion(browser: Browser, html: Path) -> None:
    page = browser.open(html, calm=True)
    assert page.run("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    page.run("headcount.go(0)")
    page.click(".jumps button:nth-child(2)")
    page.wait("!document.querySelector('.figures dd b').innerText.startsWith('24 of')")
    stops = {f"{HEADS - each} of {HEADS}" for each in (6, 12, 18, 22)}
    assert page.texts(".figures dd b")[0] in stops
    page.close()


def test_what_is_not_drawn_is_not_explained(page: Page) -> None:
    """The ideal has a stroke where operations were counted; a search's timing has none."""
    for figure in ("#cost", "#cost1"):
        strokes = page.run(f"document.querySelectorAll('{figure} .ideal').length")
        assert ("vertical line" in page.text(f"{figure} .rank")) == (strokes > 0)


def test_few_seeds_are_named_where_no_difference_is_significant(
    browser: Browser, tmp_path: Path, files: Path
) -> None:
    study(tmp_path / "few", LAYOUT, seeds=2)
    opened = browser.open(report(tmp_path / "few", out=tmp_path / "page.html").out)
    opened.wait("document.querySelector('#tests') !== null")
    marks = "".join(opened.texts("#tests td"))
    assert ("With 2 seeds no difference" in opened.text("#tests .lead")) == (
        not {"▲", "▼"} & set(marks)
    )
    opened.close()
