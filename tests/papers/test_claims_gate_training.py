"""AutoAttention's claims on gates in training, on runs whose answer is planted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from papers.planted import SEEDS, Planted, prune, verdict

TASKS = ("cola", "mrpc")


def half(
    reopened: Sequence[int] = (4, 5, 6),
    kept: int = 1,
    left: Sequence[Sequence[int]] = ((4,) * 6,) * 3,
    gaps: dict[str, Sequence[float | None]] | None = None,
) -> Planted:
    """Gates with half the heads gone: by seed what opened again, what is left, and the gap."""
    finished = Planted()
    every = {"straight-through": (0.0, 0.0, 0.0)} | (gaps or {})
    for task in TASKS:
        for name, values in every.items():
            for seed in SEEDS:
                learned = {
                    "gates_reopened": reopened[seed],
                    "gates_reopened_and_kept": min(kept, reopened[seed]),
                    "gap": None if values[seed] is None else {"gap": values[seed]},
                }
                record = prune(
                    0.8, kept={"encoder": list(left[seed])}, learned=learned,
                    method={"name": name, "coarse": "linear"},
                )  # fmt: skip
                axes = {"task": task, "method": name, "ratio": 0.5, "seed": seed}
                finished.add("gates", axes, record)
    return finished


@pytest.mark.parametrize(
    ("reopened", "word"),
    [((4, 5, 6), "holds"), ((0, 0, 0), "does not hold"), ((0, 0, 9), "undecided")],
)
def test_gates_open_again(reopened: tuple[int, ...], word: str) -> None:
    first, kept, *others = verdict("AA4", half(reopened))
    assert (first.verdict, first.seeds, first.n, first.of) == (word, 3, 96, "gates")
    assert first.value == pytest.approx(sum(reopened) / 3 / 48)
    assert not others
    if word == "holds":
        assert kept.value == pytest.approx((1 / 4 + 1 / 5 + 1 / 6) / 3)
    if word == "does not hold":
        assert kept.verdict == "not run"  # of none, none is open at the end


def test_gates_open_again_without_a_ratio() -> None:
    finished = half()
    for rate in (0.1, 1.0):
        for seed in SEEDS:
            learned = {"gates_reopened": 0, "gates_reopened_and_kept": 0}
            axes = {"task": "cola", "method": "straight-through", "gate_lr": rate, "seed": seed}
            finished.add("rates", axes, prune(0.8, learned=learned))
        closed: dict[str, Any] = {"all_closed": {"step": 3}}  # no trace is left of it
        finished.add("rates", axes | {"seed": 9}, prune(0.1, **closed))
    first, _, free, *_ = verdict("AA4", finished)
    assert (first.verdict, free.verdict) == ("holds", "does not hold")
    assert "no ratio asked for" in free.what


@pytest.mark.parametrize(
    ("left", "word", "value"),
    [
        (((5, 5, 5, 5, 2, 2), (5, 5, 4, 6, 3, 1), (5, 5, 5, 5, 1, 2)), "holds", -0.3958333),
        (((3, 3, 3, 3, 6, 6), (3, 3, 3, 3, 6, 5), (3, 3, 3, 3, 6, 7)), "does not hold", 0.375),
        (((4, 4, 4, 4, 4, 4), (5, 5, 4, 4, 2, 4), (4, 3, 3, 3, 5, 6)), "undecided", 0.0),
    ],
)
def test_the_last_layers(left: Any, word: str, value: float) -> None:
    first, *others = verdict("AA5", half(left=left))
    assert first.verdict == word
    if word != "undecided":
        assert first.value == pytest.approx(value)
    assert others[-1].what.startswith("Spearman")
    assert "Left by layer: " in first.note


def test_the_last_third_of_twelve_layers_is_four() -> None:
    twelve = (4, 4, 4, 4, 4, 4, 4, 4, 2, 2, 2, 2)
    first, *_ = verdict("AA5", half(left=(twelve,) * 3))
    assert first.value == pytest.approx(-0.25)
    assert first.n == 96


def test_layers_are_counted_over_all_stacks() -> None:
    finished = half()
    for record in finished._records.values():
        more = prune(0.8, kept={"encoder": [8, 8, 8], "decoder": [8, 8, 2]})
        record["mask"].update(more["mask"])  # type: ignore[attr-defined]
    first, *_ = verdict("AA5", finished)
    assert first.value == pytest.approx(10 / 16 - 1)


@pytest.mark.parametrize(
    ("gaps", "word"),
    [
        ((0.05, 0.06, 0.04), "holds"),
        ((0.0, 0.0, 0.0), "does not hold"),
        ((-0.05, -0.06, -0.04), "does not hold"),
        ((-0.1, 0.0, 0.2), "undecided"),
    ],
)
def test_train_and_test(gaps: tuple[float, ...], word: str) -> None:
    first, size, *by_task = verdict("AA8", half(gaps={"hard-concrete": gaps}))
    assert (first.verdict, first.n) == (word, 1000)
    assert first.value == pytest.approx(sum(gaps) / 3)
    assert size.value == pytest.approx(sum(map(abs, gaps)) / 3)
    assert "their gap is 0" in first.note
    assert len(by_task) == 2


def test_a_gap_of_our_gates_counts_against_them() -> None:
    gaps = {"hard-concrete": (0.05, 0.06, 0.04), "straight-through": (0.15, 0.16, 0.15)}
    first, *_ = verdict("AA8", half(gaps=gaps))
    assert first.verdict == "does not hold"
    assert "gap is 0" not in first.note


def test_a_gap_that_was_not_measured_is_not_run() -> None:
    first, *_ = verdict("AA8", half(gaps={"hard-concrete": (None, None, None)}))
    assert first.verdict == "not run"
    assert verdict("AA8", half())[0].note == "No run of hard-concrete removes half the heads."
