from __future__ import annotations

import headcount as hc
from headcount.repair.finetune import training_of, with_training


def test_the_options_are_those_of_training() -> None:
    options = hc.TrainOptions(steps=3, learning_rate=1e-3)
    step = hc.Finetune.of(options)
    assert (step.steps, step.learning_rate, step.identity()) == (3, 1e-3, options.identity())


def test_another_training_takes_the_place_of_the_one_that_is_there() -> None:
    first, recover = hc.Finetune(steps=3), hc.Recover()
    assert training_of((recover, first)) == first
    assert training_of((recover,)) is None
    assert with_training((first, recover), hc.TrainOptions(steps=5)) == (
        hc.Finetune(steps=5),
        recover,
    )
    assert with_training((recover,), hc.TrainOptions()) == (recover, hc.Finetune())
