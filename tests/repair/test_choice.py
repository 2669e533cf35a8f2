from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from headcount.models.find import layout
from headcount.models.probe import probe_inputs
from headcount.models.remove import remove
from headcount.repair import choice as module
from headcount.repair.choice import Trial, _split, choose
from headcount.repair.fidelity import divergence
from headcount.repair.recover import Recover
from headcount.repair.recovery import recover, recover_layers
from headcount.tasks.encoding import EncodedRows
from models.zoo import build, mixed

OPTIONS = Recover(choose=True, hold_back=0.25)


def data(model, batches=8):
    return [probe_inputs(model, batch=4, length=10, seed=seed) for seed in range(batches)]


@pytest.mark.parametrize("family", ["bert", "llama", "t5"])
def test_the_best_on_held_back_rows_is_what_the_model_gets(family):
    model = build(family)
    small = remove(model, mixed(layout(model)))
    batches = data(model)
    learnt, held, count = _split(batches, 0.25)
    plain = remove(model, mixed(layout(model)))
    left = divergence(plain, model, held)
    recover_layers(plain, model, learnt)
    first = divergence(plain, model, held)
    made = choose(small, model, batches, options=OPTIONS)
    assert [trial.divergence for trial in made.trials[:2]] == [left, first]
    assert made.chosen.divergence == min(trial.divergence for trial in made.trials)
    assert divergence(small, model, held) <= made.chosen.divergence <= min(left, first)
    told = made.to_json()
    assert (told["held_back"], count) == (8, 8)
    assert told["trials"][0] == {"options": None, "divergence": left}
    names = {"ridge", "target", "feed_forward", "bias", "path_rank", "linear", "scales"}
    assert all(set(trial["options"]) == names for trial in told["trials"][1:])


def test_a_model_that_recovery_only_harms_is_left_as_it_is(monkeypatch):
    model = build("bert")
    small = remove(model, mixed(layout(model)))
    before = [p.detach().clone() for p in small.parameters()]
    monkeypatch.setattr(module, "divergence", lambda *_: next(worse))
    worse = iter(range(1, 99))
    made = choose(small, model, data(model), options=OPTIONS)
    assert (made.chosen, made.fits) == (Trial(1), ())
    assert all(map(torch.equal, before, small.parameters()))


def test_weights_that_are_worse_when_solved_again_are_not_kept(monkeypatch):
    model = build("bert")
    small, other = (remove(model, mixed(layout(model))) for _ in range(2))
    batches = data(model)
    learnt, _, _ = _split(batches, 0.25)
    recover_layers(other, model, learnt)
    # the pruned model, recovered (best), scaled and four changes, and the best on all rows
    distances = iter([3.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.5])
    monkeypatch.setattr(module, "divergence", lambda *_: next(distances))
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
    recover_layers(other, model, few, options=Recover(scales=True))
    assert all(map(torch.equal, other.parameters(), small.parameters()))


def test_how_many_tokens_would_do_is_said():
    model = build("bert")
    small = remove(model, mixed(layout(model)))
    made = choose(small, model, data(model, 2), options=OPTIONS)
    assert "unknowns in encoder layer" in made.note
    assert "or more it can do better" in made.note


def test_held_back_rows_are_spread_and_leave_the_others():
    rows = EncodedRows({"input_ids": [[n] for n in range(20)]}, labels=np.arange(20))
    learnt, held, count = _split(rows, 0.2)
    assert held.columns["input_ids"] == [[2], [7], [12], [17]]
    assert count == 4
    assert held.labels.tolist() == [2, 7, 12, 17]
    assert sorted(learnt.labels.tolist() + held.labels.tolist()) == list(range(20))
    batches = [{"x": torch.arange(4) + at, "one": torch.ones(1)} for at in (0, 4)]
    learnt, held, count = _split(batches, 0.25)
    assert [batch["x"].tolist() for batch in held] == [[2], [6]]
    assert [batch["x"].tolist() for batch in learnt] == [[0, 1, 3], [4, 5, 7]]
    assert all(len(batch["one"]) == 1 for batch in held)
    assert _split([{"x": torch.arange(3)}], 0.25) is None


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
    monkeypatch.setattr(module, "divergence", lambda *_: next(distances))
    made = choose(small, model, batches, options=OPTIONS)
    assert any(trial.options and trial.options.bias for trial in made.trials)
    assert "biases" not in small.config.headcount
    learnt, _, _ = _split(batches, 0.25)
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
    _, held, _ = _split(batches, 0.25)
    assert divergence(small, model, held) <= made.chosen.divergence
    chosen = made.chosen.options
    assert ("linear" in small.config.headcount) == bool(chosen.path_rank or chosen.linear)
    small, other = (remove(model, mixed(layout(model))) for _ in range(2))
    distances = iter([3.0, 1.0, *[2.0] * 20])
    monkeypatch.setattr(module, "divergence", lambda *_: next(distances))
    made = choose(small, model, batches, options=asked)
    assert any(trial.options and trial.options.path_rank for trial in made.trials)
    assert "linear" not in small.config.headcount
    learnt, _, _ = _split(batches, 0.25)
    recover_layers(other, model, learnt)
    assert [n for n, _ in small.named_parameters()] == [n for n, _ in other.named_parameters()]
    assert all(map(torch.equal, other.parameters(), small.parameters()))
