"""AutoAttention's claims, on runs whose answer is planted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from headcount.papers.claims_gates import gradients, primary
from papers.planted import SEEDS, Planted, prune, verdict

TASKS = ("cola", "mrpc")
NOISE = (-0.004, 0.0, 0.004)
RIVALS = ("random", "importance", "hard-concrete", "meta")


def compared(
    leads: Mapping[str, float],
    noise: float = 1.0,
    readings: Iterable[str] = ("linear",),
    ratio: float = 0.5,
) -> Planted:
    """Straight-through gates lead each rival by so much, on every task alike."""
    finished = Planted()
    for task in TASKS:
        for seed in SEEDS:
            for at, (name, lead) in enumerate(leads.items()):
                score = 0.8 - lead + noise * NOISE[(seed + at) % 3]
                axes = {"task": task, "method": name, "ratio": ratio, "seed": seed}
                finished.add("gates", axes, prune(score, method={"name": name}))
            for number, coarse in enumerate(readings):
                axes = {"task": task, "method": "straight-through", "ratio": ratio, "seed": seed}
                method = {"name": "straight-through", "coarse": coarse}
                finished.add("gates", axes, prune(0.8 - 0.3 * number, method=method))
    return finished


@pytest.mark.parametrize(
    ("leads", "noise", "word", "closest"),
    [
        ((0.1, 0.2, 0.3, 0.05), 1.0, "holds", "meta"),
        ((0.1, -0.1, 0.3, 0.2), 1.0, "does not hold", "importance"),
        ((0.1, 0.001, 0.3, 0.2), 1.0, "undecided", "importance"),
        ((0.1, 0.1, 0.3, 0.2), 90.0, "undecided", "random"),
    ],
)
def test_against_rivals(leads: tuple[float, ...], noise: float, word: str, closest: str) -> None:
    given = dict(zip(RIVALS, leads, strict=True))
    first, *others = verdict("AA1", compared(given, noise))
    assert first.verdict == word
    assert first.value == pytest.approx(min(leads))
    assert f"The closest is {closest};" in first.note
    assert (first.seeds, first.n, first.of) == (3, 1000, "rows scored of 2 tasks")
    by_rival = [tested.value for tested in others[:4]]
    assert by_rival == pytest.approx(leads)
    assert [task for task in TASKS if task in others[-2].what + others[-1].what] == list(TASKS)


def test_p_values_are_corrected_for_the_number_of_rivals() -> None:
    alone = verdict("AA1", compared({"random": 0.1}))[1].note
    four = verdict("AA1", compared(dict.fromkeys(RIVALS, 0.1)))[1].note
    # a t of 0.1 / (0.004 / √3) with 2 degrees of freedom, and four times its p
    assert (alone, four) == ("Holm's p 0.001.", "Holm's p 0.002.")


def test_one_seed_has_no_p() -> None:
    finished = Planted()
    for name in ("random", "straight-through"):
        axes = {"task": "cola", "method": name, "ratio": 0.5, "seed": 0}
        finished.add("gates", axes, prune(0.8, method={"name": name, "coarse": "linear"}))
    assert verdict("AA1", finished)[1].note == "Holm's p unknown."


def test_one_wide_difference_leaves_the_claim_open() -> None:
    finished = compared(dict.fromkeys(RIVALS[:3], 0.05))
    for task in TASKS:
        for seed in SEEDS:
            axes = {"task": task, "method": "meta", "ratio": 0.5, "seed": seed}
            finished.add(
                "gates", axes, prune(0.8 - 0.2 - 100 * NOISE[seed], method={"name": "meta"})
            )
    first, *_ = verdict("AA1", finished)
    assert "The closest is random;" in first.note
    assert first.low > 0
    assert first.verdict == "undecided"


def test_a_rival_without_runs_is_said() -> None:
    first, *others = verdict("AA1", compared(dict.fromkeys(RIVALS[:3], 0.1)))
    assert first.verdict == "not run"
    assert [tested.note for tested in others if tested.verdict == "not run"] == [
        "No run of meta removes half the heads."
    ]
    worse = verdict("AA1", compared(dict.fromkeys(RIVALS[:3], -0.1)))
    assert worse[0].verdict == "does not hold"  # whatever meta would do


def test_both_readings_of_the_gradient() -> None:
    leads = dict.fromkeys(RIVALS, 0.1)
    first, second, *_ = verdict(
        "AA1", compared(leads, readings=("softplus", "softplus-derivative"))
    )
    assert [first.verdict, second.verdict] == ["holds", "does not hold"]
    assert "(softplus)" in first.what
    assert "(softplus-derivative)" in second.what
    assert "not run" not in first.note
    first, second, *_ = verdict("AA1", compared(leads, readings=("linear", "softplus")))
    assert "(softplus)" in first.what  # as it is printed comes first
    assert first.value == pytest.approx(-0.2)
    first, *_ = verdict("AA1", compared(leads))
    assert "gradient is linear" in first.note
    assert "that were not run: softplus, softplus-derivative." in first.note


def test_a_ratio_that_is_missing_is_said() -> None:
    finished = compared(dict.fromkeys(RIVALS, 0.1), ratio=0.4)
    for code in ("AA1", "AA4", "AA5", "AA8"):
        first, *others = verdict(code, finished)
        assert (first.verdict, others) == ("not run", [])
        assert first.note == "No run removes 50 % of the heads; tried: 40 %."


def curve(
    scores: Mapping[int, float], whole: float = 0.8, before: float = 0.8, shift: int = 0
) -> Planted:
    """Heads that stay of 48 -> score, and that of all heads; `shift` lowers one seed's."""
    finished = Planted()
    for task in TASKS:
        for seed in SEEDS:
            axes = {"task": task, "method": "all-heads", "seed": seed}
            finished.add("gates-full", axes, prune(whole, kept={"encoder": [8] * 6}))
            for kept, score in scores.items():
                axes = {"task": task, "method": "straight-through", "seed": seed}
                lower = 0.5 * (seed == 2 and shift > 0 and kept <= shift)
                record = prune(
                    score - lower, kept={"encoder": [kept // 6] * 6}, before=before,
                    method={"name": "straight-through", "coarse": "linear"},
                )  # fmt: skip
                finished.add("gates", axes | {"ratio": 1 - kept / 48}, record)
    return finished


@pytest.mark.parametrize(
    ("scores", "shift", "word", "value"),
    [
        ({36: 0.9, 24: 0.9, 12: 0.8, 6: 0.7}, 0, "holds", 0.75),
        ({36: 0.9, 24: 0.8, 12: 0.7, 6: 0.7}, 0, "does not hold", 0.5),
        ({36: 0.79, 24: 0.79, 12: 0.7, 6: 0.7}, 0, "does not hold", 0.0),
        ({36: 0.9, 24: 0.9, 12: 0.8, 6: 0.7}, 24, "undecided", (0.75 + 0.75 + 0.25) / 3),
    ],
)
def test_no_loss(scores: dict[int, float], shift: int, word: str, value: float) -> None:
    first, *others = verdict("AA2", curve(scores, shift=shift))
    assert (first.verdict, first.seeds) == (word, 3)
    assert first.value == pytest.approx(value)
    assert "25 %, 50 %, 75 %, 87.5 %" in first.note
    assert [tested.value for tested in others[-2:]] == pytest.approx([value, value])  # by task


def test_a_ratio_that_comes_back_is_not_steady() -> None:
    first, steady, *_ = verdict("AA2", curve({36: 0.9, 24: 0.7, 12: 0.9, 6: 0.7}))
    assert (first.value, steady.value) == pytest.approx((0.75, 0.25))
    assert steady.verdict == "does not hold"


def test_no_loss_against_the_model_as_given() -> None:
    scores = {36: 0.9, 24: 0.9, 12: 0.8, 6: 0.7}
    given = next(
        tested for tested in verdict("AA2", curve(scores, before=0.85)) if "as given" in tested.what
    )
    assert given.value == pytest.approx(0.5)


def test_within_one_point_and_one_percent() -> None:
    # 0.5 less 0.008: within a point, but 1.6 % of the score
    scores = {36: 0.5, 24: 0.498, 6: 0.492}
    points, share, *_ = verdict("AA3", curve(scores, whole=0.5))
    assert (points.verdict, points.value) == ("holds", pytest.approx(0.875))
    assert (share.verdict, share.value) == ("does not hold", pytest.approx(0.5))
    assert "1 point " in points.what
    first, *_ = verdict("AA3", curve({36: 0.8, 12: 0.795, 6: 0.7}))
    assert (first.verdict, first.value) == ("does not hold", pytest.approx(0.75))
    shifted = curve({36: 0.8, 12: 0.795, 6: 0.795}, shift=6)
    assert verdict("AA3", shifted)[0].verdict == "undecided"


def test_a_score_on_the_line_is_within_it_whatever_rounding_does() -> None:
    assert 0.13 - 0.01 > 0.12  # what rounding does
    first, *_ = verdict("AA3", curve({36: 0.12, 6: 0.12}, whole=0.13))
    assert first.value == pytest.approx(0.875)


def test_no_gates_no_sparsity() -> None:
    finished = Planted()
    finished.add("gates", {"task": "cola", "method": "random", "ratio": 0.5, "seed": 0}, prune(0.8))
    finished.add("gates-full", {"task": "cola", "seed": 0}, prune(0.8))
    assert verdict("AA2", finished)[0].verdict == "not run"


def test_runs_are_grouped_by_their_gradient() -> None:
    finished = Planted()
    for coarse in ("linear", "softplus", "linear"):
        method = {"name": "straight-through", "coarse": coarse}
        finished.add("gates", {"method": "straight-through"}, prune(0.5, method=method))
    finished.add("gates", {"method": "random"}, prune(0.5))
    finished.add("gates", {}, prune(0.5) | {"method": "meta"})
    runs = finished.runs("gates")
    assert {name: len(group) for name, group in gradients(runs).items()} == {
        "softplus": 1,
        "linear": 2,
    }
    assert len(primary(runs)) == 1
    assert (primary(runs[-2:]), runs[-1].method) == ([], "meta")


RATES = (0.1, 0.3, 1.0, 3.0)


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


def swept(left: Callable[[float, int], int], tasks: Sequence[str] = ("cola",)) -> Planted:
    """`left` says how many of 48 heads a learning rate and a seed leave."""
    finished = Planted()
    for task in tasks:
        for rate in RATES:
            for seed in SEEDS:
                kept = [left(rate, seed), *[0] * 5]
                record = prune(0.8, kept={"encoder": kept}, heads=48 if kept[0] else 8)
                if not kept[0]:
                    record["all_closed"] = {"step": 9}
                axes = {"task": task, "method": "straight-through", "ratio": "free"}
                finished.add("rates", axes | {"seed": seed, "gate_lr": rate}, record)
    return finished


def test_a_larger_rate_closes_more() -> None:
    first, alone = verdict("AA6", swept(lambda rate, seed: 40 - 10 * RATES.index(rate) - seed))
    assert (first.verdict, first.n, first.of, first.seeds) == ("holds", 12, "runs", 3)
    assert alone.value == pytest.approx(1.0)
    assert first.low < first.value < 1


def test_a_larger_rate_closes_fewer() -> None:
    first, *_ = verdict("AA6", swept(lambda rate, seed: 10 + 10 * RATES.index(rate) + seed))
    assert first.verdict == "does not hold"
    assert first.value < -0.9


def test_a_rate_that_does_not_matter() -> None:
    first, *_ = verdict(
        "AA6", swept(lambda rate, seed: (7, 3, 9, 4)[(RATES.index(rate) + seed) % 4])
    )
    assert first.verdict == "undecided"


def test_ranks_are_within_tasks() -> None:
    finished = swept(lambda rate, seed: 40 - 10 * RATES.index(rate))
    other = swept(lambda rate, seed: 1 + RATES.index(rate), ["mrpc"])
    for cell in other.cells["rates"]:
        if cell.axes["seed"] == 0:
            finished.add("rates", cell.axes, other._records[cell.key])
    first, *others = verdict("AA6", finished)
    # squares of 12 ranks that go up and of 4 that go down, each about the mean of its task
    assert (first.value, first.n) == (pytest.approx((135 - 5) / (135 + 5)), 16)
    assert not others


def test_a_few_runs_in_order_decide_nothing() -> None:
    finished = Planted()
    for rate in RATES[:3]:
        record = prune(0.8, kept={"encoder": [8 - int(2 * rate)]})
        finished.add("rates", {"method": "straight-through", "seed": 0, "gate_lr": rate}, record)
    first, *_ = verdict("AA6", finished)
    assert (first.verdict, first.n) == ("undecided", 3)
    more = Planted()
    for at in range(4):
        record = prune(0.8, kept={"encoder": [8 - at]})
        more.add("rates", {"method": "straight-through", "seed": 0, "gate_lr": at}, record)
    first, *_ = verdict("AA6", more)
    assert (first.value, first.low, first.verdict) == (
        pytest.approx(1),
        pytest.approx(1),
        "undecided",
    )
    assert "p 0.083." in first.note


def test_all_gates_closed_is_a_sparsity_of_one() -> None:
    first, *_ = verdict("AA6", swept(lambda rate, seed: 0 if rate == 3.0 else 30 - int(20 * rate)))
    assert first.verdict == "holds"
    assert "All gates closed in 3 of 12 runs" in first.note


def test_nothing_to_correlate() -> None:
    assert verdict("AA6", swept(lambda rate, seed: 5))[0].verdict == "not run"


def penalised(scores: dict[float, Sequence[float]], closed: float = 9.0) -> Planted:
    """Penalty -> score by seed of a model that scored 0.8 as given."""
    finished = Planted()
    for mu, by_seed in scores.items():
        for seed, score in enumerate(by_seed):
            record = prune(score, before=0.8)
            if mu >= closed:
                record["all_closed"] = {"step": 2}
            axes = {"task": "cola", "method": "straight-through", "seed": seed, "mu": mu}
            finished.add("penalties", axes, record)
    return finished


FINE = (0.8, 0.79, 0.81)


@pytest.mark.parametrize(
    ("beyond", "word"),
    [
        ((0.1, 0.12, 0.11), "holds"),
        ((0.85, 0.84, 0.85), "does not hold"),
        ((0.8, 0.7, 0.9), "undecided"),
    ],
)
def test_collapse(beyond: tuple[float, ...], word: str) -> None:
    scores = {1e-4: FINE, 1e-3: FINE, 1e-2: FINE, 1e-1: beyond}
    first, second = verdict("AA7", penalised(scores, closed=0.1))
    assert (first.verdict, first.seeds) == (word, 3)
    assert first.value == pytest.approx(1 - sum(beyond) / 3 / 0.8)
    assert second.value == pytest.approx(first.value)
    assert "All gates closed in 3 of 12 runs" in first.note
    assert "0.1: " in first.note


def test_the_limit_itself_is_not_beyond_it() -> None:
    scores = {1e-3: FINE, 1e-2: (0.1, 0.1, 0.1), 1e-1: (0.1, 0.1, 0.1)}
    first, second = verdict("AA7", penalised(scores))
    # up to 0.01 the mean is half fallen; up to 0.001 all is well
    assert first.value == pytest.approx(0.5 * (1 + 0.125) - 0.125)
    assert second.value == pytest.approx(1 - 0.125)


def test_penalties_on_one_side_only() -> None:
    first, *_ = verdict("AA7", penalised({1e-4: FINE, 1e-3: FINE}))
    assert (first.verdict, first.note) == (
        "not run",
        "Penalties on both sides are needed; tried: 0.0001, 0.001.",
    )
