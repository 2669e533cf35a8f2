from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from headcount.base.errors import UsageError
from headcount.heads import Mask
from headcount.learned.gap import gap_measure, score_measure
from headcount.models.find import layout
from headcount.training.evaluate import evaluate
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring

OPTIONS = TrainOptions()


class Counted:
    """Stands in for a keeper: notes what it is shown."""

    seed = 0

    def __init__(self, heads: Any, noisy: bool) -> None:
        self.layout, self.kind = heads, SimpleNamespace(noisy=noisy)
        self.shown: list[torch.Tensor] = []

    def draw(self, done: float, random: torch.Generator) -> torch.Tensor:
        return torch.rand(len(self.layout), generator=random)

    def show(self, gates: torch.Tensor) -> None:
        self.shown.append(gates)

    def chosen(self) -> Mask:
        return Mask.of(self.layout, [("encoder", 0, 1)])


@pytest.mark.parametrize(("noisy", "draws"), [(True, 3), (False, 1)])
def test_training_gates_are_drawn_and_test_gates_shown_last(
    model: Any, task: Any, tokenizer: Any, noisy: bool, draws: int
) -> None:
    keeper: Any = Counted(layout(model), noisy)
    measure = gap_measure(model, task, tokenizer, OPTIONS, draws=3)
    assert measure is not None
    found = measure(keeper)
    assert found["draws"] == draws
    assert len(keeper.shown) == draws + 1
    assert keeper.shown[-1].tolist() == [0, 1, *[0] * 10]
    # the stand-in changes nothing, so both are the model's own score
    own = evaluate(model, task, tokenizer=tokenizer, scoring=Scoring(bootstrap=0)).score
    assert (found["test"], found["gap"]) == pytest.approx((own, 0))


def test_a_task_without_rows_of_its_own_has_no_gap(model: Any, task: Any, tokenizer: Any) -> None:
    alone = replace(task, evaluation="train")
    assert gap_measure(model, alone, tokenizer, OPTIONS, draws=1) is None
    with pytest.raises(UsageError, match="leave out score_points"):
        score_measure(model, alone, tokenizer, OPTIONS, rows=4)


def test_scoring_on_the_way_leaves_randomness_alone(model: Any, task: Any, tokenizer: Any) -> None:
    measure = score_measure(model, task, tokenizer, OPTIONS, rows=10)
    state = torch.random.get_rng_state()
    assert measure()["n"] == 10
    assert measure() == measure()
    assert torch.equal(state, torch.random.get_rng_state())
