from __future__ import annotations

from headcount.cli.typed import make_typed, typed
from headcount.pruning.methods import METHODS
from headcount.training.options import TrainOptions


def test_only_what_was_typed_changes_the_options():
    made = typed(TrainOptions, "Training", leave_out=("seed",))
    start = TrainOptions(epochs=7, seed=3)
    assert made().on(start) == start
    changed = made(learning_rate=0.1, like_lengths=False).on(start)
    assert (changed.learning_rate, changed.epochs, changed.seed) == (0.1, 7, 3)
    assert "seed" not in made.__dataclass_fields__


def test_options_of_several_say_whose_they_are(cli):
    kinds = {name: METHODS[name] for name in ("random", "subset", "hard-concrete")}
    made = make_typed("Made", "Methods", kinds)
    assert {"within", "hot", "beta", "gate_lr"} <= set(made.__dataclass_fields__)
    assert made(gate_lr=0.3).given() == {"gate_lr": 0.3}
    shown = " ".join(cli("prune", "--method", "subset", "--help").out.replace("│", " ").split())
    assert "straight-through, hard-concrete, subset: learning rate of the gates." in shown
    assert "[default: 0.1 or 0.5]" in shown
