"""About how many cuts, and how long: before a search starts and while it runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headcount.heads import Layout
from headcount.pruning.methods import as_method
from headcount.repair.recover import Recover
from headcount.runs.kinds.prune import Prune
from headcount.studies.search.answers import SearchRequest
from headcount.studies.search.bounds import read_budget, read_drop
from headcount.studies.search.options import SearchOptions
from headcount.studies.search.pace import Pace, estimate, pace_of
from headcount.tasks.calibration import Calibration
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring

FULL: Any = SimpleNamespace(seconds=5.0, n=500)  # 10 ms a row


def pace(**more: Any) -> Pace:
    return Pace(**{"sizes": 7, "seeds": 3, "per_prune": 2.0, "before": 1.0, "after": 4.0, **more})


def asked(
    bound: Any = None,
    *,
    methods: tuple[str, ...] = ("surgeon",),
    details: bool = False,
    **more: Any,
) -> SearchRequest:
    found = tuple(as_method(name) for name in methods)
    like = Prune(method=found[0], repair=more.pop("repair", (Recover(),)),
                 calibration=Calibration(samples=100), baseline=3,
                 learning=TrainOptions(steps=10, batch_size=10))  # fmt: skip
    subject: Any = SimpleNamespace(layout=Layout.of(encoder=[12] * 6))
    return SearchRequest(
        subject=subject,
        methods=found,
        bound=bound,
        like=like,
        held_out=Scoring(),
        search_options=SearchOptions(bench=False, **more),
        seed=0,
        command=None,
        report=print,
        note=print,
        details=details,
    )


def test_it_says_how_far_it_is_and_what_is_left() -> None:
    own = pace()
    assert (own.cuts, own.seconds) == (21, 47.0)
    assert estimate(own, 72, False) == "Trying about 21 prunings of 72 heads: about 47 s in all."
    for size in (36, 18):
        for seed in range(3):
            own.step(("surgeon", size), seed)
    own.step(("surgeon", 27), 0)
    assert str(own) == "7 of about 19"  # a size whose first seed decides takes two fewer
    own.spent |= {"a": 1.0, "b": 3.0, "c": 3.0}
    own.step(("surgeon", 27), 0)
    assert str(own) == "7 of about 19, about 43 s left"


def test_more_cuts_than_foreseen_are_counted_as_well() -> None:
    own = pace(sizes=1, seeds=1)
    for size in range(3):
        own.step(size, 0)
    assert str(own) == "3 of about 3"


def test_a_long_search_names_the_quick_one() -> None:
    slow = pace(per_prune=100.0)
    assert estimate(slow, 72, False).endswith("about 35 min 5 s in all. --quick takes less.")
    assert estimate(slow, 72, True).endswith("in all.")


@pytest.mark.parametrize(
    ("bound", "more", "sizes", "seeds", "each"),
    [
        (read_drop("1%"), {}, 10, 3, 4.0),  # 200 rows scored, 100 looked at twice
        (read_drop("1%"), {"seeds": 1, "repair": ()}, 10, 1, 2.0),
        (read_drop("1%"), {"methods": ("surgeon", "random")}, 20, 3, 4.0),
        (None, {}, 13, 1, 4.0),
        (read_budget("parameters", "0.8x"), {}, 1, 1, 4.0),
        (read_drop("1%"), {"methods": ("straight-through",), "repair": ()}, 10, 3, 5.0),
    ],
    ids=["loss", "quick", "two methods", "knee", "budget", "gates"],
)
def test_what_is_foreseen(bound: Any, more: Any, sizes: int, seeds: int, each: float) -> None:
    found = pace_of(asked(bound, **more), FULL, 200, 300)
    assert (found.sizes, found.seeds) == (sizes, seeds)
    assert found.per_prune == pytest.approx(each)
    assert found.after > 0


def test_what_the_page_says_of_every_head_is_counted_too() -> None:
    without, both = (pace_of(asked(details=details), FULL, 300, 200) for details in (False, True))
    # 64 rows forwards and back for importance, and forwards twice as long for roles
    assert both.seconds - without.seconds == pytest.approx(64 * 5 * 0.01)
