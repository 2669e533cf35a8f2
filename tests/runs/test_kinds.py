from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headcount.base.errors import UsageError
from headcount.behaviour.options import RoleOptions
from headcount.likeness.options import DistanceOptions
from headcount.runs.kinds import KINDS
from headcount.runs.kinds.bench import BenchOptions
from headcount.runs.kinds.evaluate import Evaluate
from headcount.runs.kinds.importance import ImportanceOptions
from headcount.runs.kinds.lm_eval import LmEval
from headcount.runs.kinds.probe import Probe
from headcount.runs.kinds.redundancy import RedundancyOptions
from headcount.runs.kinds.roles import RolesOptions
from headcount.runs.kinds.train import Train
from headcount.runs.kinds.transfer import TransferOptions
from headcount.runs.run import Run
from headcount.sensitivity.options import GradientOptions
from headcount.tasks.calibration import InputOptions
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring
from runs.options import with_another

ASKED = {
    "train": Train(training=TrainOptions(epochs=1, steps=4), fraction=0.5, curve_scores=True),
    "evaluate": Evaluate(scoring=Scoring(limit=9), masks=("44", "23"), beams=2),
    "importance": ImportanceOptions(
        gradient_options=GradientOptions(normalize="l1", samples=7), keep="44"
    ),
    "redundancy": RedundancyOptions(
        input_options=InputOptions(rows=Path("a.txt")),
        distance_options=DistanceOptions(distances=("js",)),
    ),
    "roles": RolesOptions(
        input_options=InputOptions(random=9), role_options=RoleOptions(alone=True)
    ),
    "transfer": TransferOptions(finetuned="b"),
    "bench": BenchOptions(ratio=(0.5, 0.9), batch=(1, 8), timing_seconds=5, onnx=False),
    "lm-eval": LmEval(tasks=("piqa",), limit=9),
    "probe": Probe(wait=0.5, say="here"),
}


def test_every_kind_is_here_or_a_prune():
    assert {entry.name for entry in KINDS} == {*ASKED, "prune"}


@pytest.mark.parametrize("kind", ASKED)
def test_what_is_written_is_read_back(kind):
    run = Run(kind, "a", task="sst2", options=ASKED[kind], seed=3)
    assert Run.read(run.to_plain()) == run


@pytest.mark.parametrize("kind", ASKED)
def test_the_key_depends_on_every_option(kind):
    options = ASKED[kind] if kind in ("transfer", "lm-eval") else type(ASKED[kind])()
    run, refused = Run(kind, "a", options=options), set()
    for place, other in with_another(options):
        if place in ("training.save_every", "training.save_minutes"):
            continue  # how often a training can be resumed from changes nothing that comes out
        try:
            assert Run(kind, "a", options=other).key != run.key, place
        except UsageError:
            refused.add(place)  # what does not go together
    assert refused <= {"new_tokenizer", "gradient_options.normalize"}


SEEDED = [kind for kind, options in ASKED.items() if options.seeded]


def seeds(run: Run) -> list[int]:
    """Every seed in the plain form of a run."""

    def inside(data):
        for name, value in data.items():
            if name == "seed":
                yield value
            elif isinstance(value, dict):
                yield from inside(value)

    return list(inside(run.to_plain()))


def test_every_kind_whose_options_have_a_seed_says_so():
    with_seed = {kind for kind in ASKED if len(seeds(Run(kind, "a", options=ASKED[kind]))) > 1}
    assert with_seed == set(SEEDED)


@pytest.mark.parametrize("kind", SEEDED)
def test_the_seed_of_a_run_has_one_home(kind):
    options = ASKED[kind]
    run = Run(kind, "a", options=options)
    other = replace(run, seed=3)
    assert (seeds(run), seeds(other), seeds(replace(other, seed=0))) == ([0, 0], [3, 3], [0, 0])
    assert len({run.key, other.key, replace(run, seed=4).key}) == 3
    assert getattr(other.options_as(type(options)), options.seeded).seed == 3
    said = replace(options, **{options.seeded: replace(getattr(options, options.seeded), seed=3)})
    assert Run(kind, "a", options=said) == Run(kind, "a", options=said, seed=3) == other
    assert Run.read(other.to_plain()) == other
    with pytest.raises(UsageError, match="run's seed is 4, and its options say 3: say it once"):
        Run(kind, "a", options=said, seed=4)


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


def test_a_list_of_one_size_and_the_usual_time_are_what_they_were():
    assert BenchOptions(batch=(8,), length=(32,)) == BenchOptions(batch=8, length=32)
    plain = Run("bench", "a", options=BenchOptions(batch=(8,))).to_plain()["options"]
    assert plain["batch"] == 8
    assert "timing_seconds" not in plain  # or the runs that are there would have another key
    with pytest.raises(UsageError, match="A batch is at least 1 example, not 0"):
        BenchOptions(batch=(1, 0))


def test_options_of_another_kind_are_refused():
    with pytest.raises(UsageError, match="has options of Train, not of Bench"):
        Run("train", "a", options=BenchOptions())
