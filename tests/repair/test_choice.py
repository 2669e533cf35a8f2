from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from headcount.base.errors import UsageError
from headcount.models.find import layout
from headcount.models.probe import probe_inputs
from headcount.models.remove import remove
from headcount.repair import choice as module
from headcount.repair.choice import Trial, _folds, choose
from headcount.repair.fidelity import divergence
from headcount.repair.recover import Recover
from headcount.repair.recovery import recover, recover_layers
from headcount.tasks.encoding import EncodedRows
from models.zoo import build, mixed


@pytest.fixture(autouse=True)
def one_fold(monkeypatch):
    """So few rows are held back in turn otherwise."""
    monkeypatch.setattr(module, "ROWS", 1)


def given(distances):
    """Distances as if they were measured on one row."""
    return lambda *_: torch.tensor([[next(distances), 1.0]], dtype=torch.float64)


OPTIONS = Recover(choose=True, hold_back=0.25)


def data(model, batches=8):
    return [probe_inputs(model, batch=4, length=10, seed=seed) for seed in range(batches)]


@pytest.mark.parametrize("family", ["bert", "llama", "t5"])
def test_the_best_on_held_back_rows_is_what_the_model_gets(family):
    model = build(family)
    small = remove(model, mixed(layout(model)))
    batches = data(model)
    ((learnt, held),) = _folds(batches, 0.25)
    plain = remove(model, mixed(layout(model)))
    left = divergence(plain, model, held)
    recover_layers(plain, model, learnt)
    first = divergence(plain, model, held)
    made = choose(small, model, batches, options=OPTIONS)
    assert [trial.divergence for trial in made.trials[:2]] == [left, first]
    # a change stays where it is better by more than the error of that
    assert made.chosen in made.trials
    assert divergence(small, model, held) <= made.chosen.divergence <= min(1.1 * left, first)
    told = made.to_json()
    assert told["held_back"] == 8
    assert told["trials"][0] == {"options": None, "divergence": left}
    names = {"ridge", "target", "feed_forward", "bias", "path_rank", "linear", "scales"}
    assert all(set(trial["options"]) == names for trial in told["trials"][1:])


def test_a_model_that_recovery_only_harms_is_left_as_it_is(monkeypatch):
    model = build("bert")
    small = remove(model, mixed(layout(model)))
    before = [p.detach().clone() for p in small.parameters()]
    monkeypatch.setattr(module, "divergences", given(iter(range(1, 99))))
    made = choose(small, model, data(model), options=OPTIONS)
    assert (made.chosen, made.fits) == (Trial(1), ())
    assert all(map(torch.equal, before, small.parameters()))


def test_weights_that_are_worse_when_solved_again_are_not_kept(monkeypatch):
    model = build("bert")
    small, other = (remove(model, mixed(layout(model))) for _ in range(2))
    batches = data(model)
    ((learnt, _),) = _folds(batches, 0.25)
    recover_layers(other, model, learnt)
    # the pruned model, recovered (best), scaled and four changes, and the best on all rows
    distances = iter([3.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.5])
    monkeypatch.setattr(module, "divergences", given(distances))
    choose(small, model, batches, options=OPTIONS)
    assert all(map(torch.equal, other.parameters(), small.parameters()))


def test_too_few_rows_to_hold_any_back_scale_the_heads_and_say_how_many_are_needed():
    model = build("bert")
    small, other = (remove(model, mixed(layout(model))) for _ in range(2))
    few = [{name: value[:3] for name, value in data(model, 1)[0].items()}]
    made = choose(small, model, few, options=OPTIONS)
    assert made.chosen.options == Recover(scales=True, hold_back=0.25)
    assert math.isnan(made.chosen.divergence)
    assert made.held_back == 0
    assert "fewer than 4 rows, so none was held back" in str(made.note)
    recover_layers(other, model, few, options=Recover(scales=True))
    assert all(map(torch.equal, other.parameters(), small.parameters()))


def test_answers_that_are_no_numbers_and_other_models_are_refused():
    model = build("bert")
    small = remove(model, mixed(layout(model)))
    with pytest.raises(UsageError, match="is not LlamaForCausalLM with heads removed"):
        choose(small, build("llama"), data(model), options=OPTIONS)
    with torch.no_grad():
        small.classifier.weight[0, 0] = float("nan")
    with pytest.raises(UsageError, match="held back are not all numbers"):
        choose(small, model, data(model), options=OPTIONS)


def test_how_many_tokens_would_do_is_said():
    model = build("bert")
    small = remove(model, mixed(layout(model)))
    made = choose(small, model, data(model, 2), options=OPTIONS)
    assert "unknowns in encoder layer" in made.note
    assert "or more it can do better" in made.note


def test_held_back_rows_are_spread_and_leave_the_others():
    rows = EncodedRows({"input_ids": [[n] for n in range(20)]}, labels=np.arange(20))
    ((learnt, held),) = _folds(rows, 0.2)
    assert held.columns["input_ids"] == [[2], [7], [12], [17]]
    assert len(held) == 4
    assert held.labels.tolist() == [2, 7, 12, 17]
    assert sorted(learnt.labels.tolist() + held.labels.tolist()) == list(range(20))
    batches = [{"x": torch.arange(4) + at, "one": torch.ones(1)} for at in (0, 4)]
    ((learnt, held),) = _folds(batches, 0.25)
    assert [batch["x"].tolist() for batch in held] == [[2], [6]]
    assert [batch["x"].tolist() for batch in learnt] == [[0, 1, 3], [4, 5, 7]]
    assert all(len(batch["one"]) == 1 for batch in held)
    assert _folds([{"x": torch.arange(3)}], 0.25) == []


def test_the_public_function_chooses_as_well():
    model = build("bert")
    small, other = (remove(model, mixed(layout(model))) for _ in range(2))
    batches = data(model)
    seen = []
    recover(small, model, batches, options=OPTIONS, report=lambda *done: seen.append(done))
    choose(other, model, batches, options=OPTIONS)
    assert all(map(torch.equal, other.parameters(), small.parameters()))
    assert [done for done, _ in seen] == list(range(2, len(seen) + 2))


def test_a_bias_that_was_tried_and_not_chosen_is_gone(monkeypatch):
    model = build("llama")
    small, other = (remove(model, mixed(layout(model))) for _ in range(2))
    batches = data(model)
    distances = iter([3.0, 1.0, *[2.0] * 20])
    monkeypatch.setattr(module, "divergences", given(distances))
    made = choose(small, model, batches, options=OPTIONS)
    assert any(trial.options and trial.options.bias for trial in made.trials)
    assert "biases" not in small.config.headcount
    ((learnt, _),) = _folds(batches, 0.25)
    recover_layers(other, model, learnt)
    assert [n for n, _ in small.named_parameters()] == [n for n, _ in other.named_parameters()]
    assert all(map(torch.equal, other.parameters(), small.parameters()))


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_paths_are_tried_where_they_are_asked_for_and_gone_where_they_do_not_win(
    family, monkeypatch
):
    model = build(family)
    batches = data(model)
    asked = Recover(choose=True, hold_back=0.25, path_rank=4, linear=True)
    small = remove(model, mixed(layout(model)))
    made = choose(small, model, batches, options=asked)
    tried = [(trial.options.path_rank, trial.options.linear) for trial in made.trials[1:]]
    assert tried[0] == (0, False)
    assert any(rank for rank, _ in tried)
    assert any(linear for _, linear in tried)
    ((_, held),) = _folds(batches, 0.25)
    assert divergence(small, model, held) <= made.chosen.divergence
    chosen = made.chosen.options
    assert ("linear" in small.config.headcount) == bool(chosen.path_rank or chosen.linear)
    small, other = (remove(model, mixed(layout(model))) for _ in range(2))
    distances = iter([3.0, 1.0, *[2.0] * 20])
    monkeypatch.setattr(module, "divergences", given(distances))
    made = choose(small, model, batches, options=asked)
    assert any(trial.options and trial.options.path_rank for trial in made.trials)
    assert "linear" not in small.config.headcount
    ((learnt, _),) = _folds(batches, 0.25)
    recover_layers(other, model, learnt)
    assert [n for n, _ in small.named_parameters()] == [n for n, _ in other.named_parameters()]
    assert all(map(torch.equal, other.parameters(), small.parameters()))


def test_few_held_back_rows_are_others_in_turn(monkeypatch):
    monkeypatch.setattr(module, "ROWS", 32)
    rows = EncodedRows({"input_ids": [[n, n] for n in range(21)]}, kind="classification")
    folds = _folds(rows, 0.15)
    held = [[row[0] for row in part.columns["input_ids"]] for _, part in folds]
    assert len(folds) == 7
    assert sorted(itertools.chain(*held)) == list(range(21))  # each once
    for learnt, part in folds:
        both = learnt.columns["input_ids"] + part.columns["input_ids"]
        assert sorted(both) == rows.columns["input_ids"]
    # where every token is predicted a few long rows are enough
    long = EncodedRows({"input_ids": [[1] * 512] * 16}, kind="causal-lm")
    assert len(_folds(long, 0.15)) == 1
    model = build("bert")
    small = remove(model, mixed(layout(model)))
    batches = data(model, 5)
    folds = _folds(batches, 0.25)
    made = choose(small, model, batches, options=OPTIONS)
    assert len(folds) == 4
    assert made.held_back == 20
    values = []
    for learnt, part in folds:
        plain = remove(model, mixed(layout(model)))
        recover_layers(plain, model, learnt)
        values.append(divergence(plain, model, part))
    assert made.trials[1].divergence == pytest.approx(np.mean(values), rel=1e-6)


def test_a_change_that_is_better_by_chance_does_not_stay(monkeypatch):
    """A gain of 0.1 in the mean over four rows: in each alike, or in one by far."""
    model = build("bert")
    batches = data(model, 2)
    for last, stays in (([0.9] * 4, True), ([2.6, 1.0, 0.0, 0.0], False)):
        small = remove(model, mixed(layout(model)))
        rows = iter([[9.0] * 4, [1.0] * 4, [5.0] * 4, last, *[[5.0] * 4] * 20])
        monkeypatch.setattr(
            module, "divergences",
            lambda *_, rows=rows: torch.tensor([[d, 1.0] for d in next(rows)]).double(),
        )  # fmt: skip
        made = choose(small, model, batches, options=OPTIONS)
        assert made.trials[3].divergence == pytest.approx(0.9)
        assert (made.chosen == made.trials[3]) == stays
        assert made.chosen in (made.trials[1], made.trials[3])


def test_plain_recovery_goes_where_it_is_surely_worse(monkeypatch):
    """Worse by 0.1 in the mean over four rows: in each alike, or in one by far."""
    model = build("bert")
    batches = data(model, 2)
    for plain, stays in (([1.1] * 4, False), ([2.8, 1.0, 0.6, 0.0], True)):
        small = remove(model, mixed(layout(model)))
        rows = iter([[1.0] * 4, plain, *[[5.0] * 4] * 20])
        monkeypatch.setattr(
            module, "divergences",
            lambda *_, rows=rows: torch.tensor([[d, 1.0] for d in next(rows)]).double(),
        )  # fmt: skip
        made = choose(small, model, batches, options=OPTIONS)
        assert made.trials[1].divergence == pytest.approx(1.1)
        assert made.chosen == made.trials[int(stays)]
