from __future__ import annotations

from pathlib import Path

import pytest

from headcount.behaviour.options import Describing
from headcount.errors import UsageError
from headcount.likeness.options import Likening
from headcount.runs.kinds import (
    Bench,
    Evaluate,
    Importance,
    Probe,
    Redundancy,
    Roles,
    Train,
    Transfer,
)
from headcount.runs.run import KINDS, Run
from headcount.sensitivity.options import Measuring
from headcount.tasks.reading import Reading
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring

ASKED = {
    "train": Train(training=TrainOptions(epochs=1, steps=4), fraction=0.5, curve_scores=True),
    "evaluate": Evaluate(scoring=Scoring(limit=9), masks=("44", "23"), beams=2),
    "importance": Importance(measuring=Measuring(normalize="l1", samples=7), keep="44"),
    "redundancy": Redundancy(
        reading=Reading(inputs=Path("a.txt")), likening=Likening(distances=("js",))
    ),
    "roles": Roles(reading=Reading(random=9), describing=Describing(alone=True)),
    "transfer": Transfer(finetuned="b"),
    "bench": Bench(ratio=(0.5, 0.9), onnx=False),
    "probe": Probe(wait=0.5, say="here"),
}


def test_every_kind_is_here_or_a_prune():
    assert {entry.name for entry in KINDS} == {*ASKED, "prune"}


@pytest.mark.parametrize("kind", ASKED)
def test_what_is_written_is_read_back(kind):
    run = Run(kind, "a", task="sst2", options=ASKED[kind], seed=3)
    assert Run.read(run.to_plain()) == run


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"new_tokenizer": 90}, "from-scratch"),
        ({"rows": 0}, "at least 1"),
        ({"fraction": 1.5}, "at most 1"),
    ],
)
def test_training_that_cannot_be_is_refused(wrong, said):
    with pytest.raises(UsageError, match=said):
        Train(**wrong)


def test_options_of_another_kind_are_refused():
    with pytest.raises(UsageError, match="has options of Train, not of Bench"):
        Run("train", "a", options=Bench())
