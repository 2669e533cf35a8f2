from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from headcount.base.errors import HeadcountError, NotFoundError, UsageError
from headcount.base.files import locked
from headcount.heads import Mask
from headcount.learned.keeper import AllClosedError
from headcount.learned.methods import HardConcrete, StraightThrough, Subset
from headcount.learned.run import LearnedGates, finished, learn
from headcount.learned.trace import Trace
from headcount.models.find import layout
from headcount.models.fingerprint import weights_fingerprint
from headcount.models.remove import remove
from headcount.models.shipped import locate
from headcount.pruning.methods import MethodInputs
from headcount.tasks import open_task
from headcount.training.evaluate import evaluate
from headcount.training.options import TrainingInputs
from headcount.training.scoring import Scoring
from models.zoo import build
from training.conftest import interrupt, tiny

from .conftest import SHORT, STILL

LEARN = {"device": "cpu", "gap": 0}
PLANTED = 8 / 12
"""The ratio that leaves as many heads as are needed."""
STEADY = {"gate_optimizer": "sgd", "gate_schedule": "constant"}
PLAIN = {**STEADY, "gate_momentum": 0.0}
FAST = {**STEADY, "gate_lr": 0.5, "gate_momentum": 0.9}


def trained(method, model, task, tokenizer, train):
    training = TrainingInputs(task=task, tokenizer=tokenizer, options=train, device="cpu")
    return method.prepare(model, MethodInputs(training=training))


@pytest.mark.parametrize(
    "gates",
    [
        # the factor of eq. 10 grows with W′ itself: large steps would blow it up
        StraightThrough(coarse="softplus", **FAST | {"gate_lr": 0.02}),
        StraightThrough(coarse="linear", **FAST),
        Subset(gate_lr=0.2),
        HardConcrete(),
    ],
    ids=["softplus", "linear", "subset", "concrete"],
)
def test_the_planted_heads_are_found(planted, tokenizer, gates):
    model, task, needed = planted
    found = learn(model, task, gates, PLANTED, train=STILL, tokenizer=tokenizer, **LEARN)
    assert found.mask == needed
    assert found.route["asked"] == 4


@pytest.mark.parametrize(
    "gates", [StraightThrough(), HardConcrete(), Subset()], ids=["straight", "concrete", "subset"]
)
def test_a_method_decides_as_its_gates_learn(model, task, tokenizer, gates):
    train = replace(SHORT, steps=6)
    named = trained(gates, model, task, tokenizer, train)(0.5, 0)
    plain = learn(model, task, gates, 0.5, train=train, tokenizer=tokenizer, device="cpu")
    assert np.array_equal(named.learned.trace.values, plain.trace.values)
    assert named.learned.trace.about == plain.trace.about
    assert named.mask == plain.mask
    assert weights_fingerprint(named.model) == weights_fingerprint(plain.model)


@pytest.mark.parametrize("seed", [1, 2])
def test_hard_concrete_finds_them_as_it_comes(planted, tokenizer, seed):
    model, task, needed = planted
    found = trained(HardConcrete(), model, task, tokenizer, STILL)(PLANTED, seed).learned
    assert found.mask == needed
    # the penalty got there alone, by the schedule
    assert (found.route["open_then"], found.route["closed_by_ranking"]) == (4, 0)
    assert found.trace.states[0].all()


def test_a_gate_closes_and_reopens_in_training(planted, tokenizer):
    model, task, needed = planted
    gates = StraightThrough(**FAST, trace=60)
    found = learn(model, task, gates, PLANTED, train=STILL, tokenizer=tokenizer, **LEARN)
    states = np.array(found.trace.states)
    reopened = [
        head
        for place, head in enumerate(found.trace.layout)
        if "101" in "".join("01"[int(s)] for i, s in enumerate(states[:, place])
                            if i == 0 or s != states[i - 1, place])
    ]  # fmt: skip
    assert set(reopened) & needed.kept  # closed while it was needed, and back at the end
    assert found.trace.summary()["gates_reopened_and_kept"] >= 1
    assert sum(found.trace.reopenings) >= len(set(reopened) & needed.kept)
    assert states[0].all()


def test_relu_gates_do_not_reopen(planted, tokenizer):
    model, task, _ = planted
    gates = StraightThrough(coarse="relu", **PLAIN, gate_lr=0.5, hold="penalty", mu=0.5)
    train = replace(STILL, steps=20)
    found = learn(model, task, gates, 0.5, train=train, tokenizer=tokenizer, **LEARN)
    assert sum(found.trace.closings) > 0
    assert sum(found.trace.reopenings) == 0


def test_free_sparsity_grows_with_mu(model, task, tokenizer):
    kept = []
    for mu in (1e-6, 0.5):
        gates = StraightThrough(coarse="softplus", **PLAIN, gate_lr=0.2, mu=mu)
        found = learn(model, task, gates, train=SHORT, tokenizer=tokenizer, **LEARN)
        kept.append(len(found.mask))
        assert found.route["rule"].startswith("free")
        assert found.route["open_then"] == len(found.mask)
    assert kept[0] == 12
    assert 0 < kept[1] < 12


@pytest.mark.parametrize("hold", ["shift", "penalty"])
@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.9])
def test_the_ratio_is_exact_and_the_record_says_how(model, task, tokenizer, hold, ratio):
    gates = StraightThrough(**PLAIN, gate_lr=0.1, hold=hold)
    found = learn(model, task, gates, ratio, train=SHORT, tokenizer=tokenizer, **LEARN)
    route = found.route
    assert len(found.mask) == layout(model).kept_at(ratio) == route["asked"]
    ranked = route["opened_by_ranking"] - route["closed_by_ranking"]
    assert route["open_then"] + ranked == len(found.mask)
    if hold == "shift":
        assert (route["closed_by_ranking"], route["opened_by_ranking"]) == (0, 0)
    else:
        assert route["closed_by_ranking"] > 0  # so small a rate does not get there alone
    assert found.examples == 6 * 16 * 2


@pytest.mark.parametrize("method", [StraightThrough, HardConcrete])
def test_reach_says_when_the_number_may_be_met(model, task, tokenizer, method):
    found = [
        learn(
            model,
            task,
            method(hold="shift", reach=reach),
            0.5,
            train=SHORT,
            tokenizer=tokenizer,
            **LEARN,
        ).route["reached_at_step"]
        for reach in (0.1, 1.0)
    ]
    assert found[0] == 1
    assert found[1] > 2


def test_the_model_given_stays_as_it_is(model, task, tokenizer):
    before = weights_fingerprint(model)
    state = torch.random.get_rng_state()
    found = learn(model, task, Subset(), 0.5, train=SHORT, tokenizer=tokenizer, **LEARN)
    assert weights_fingerprint(model) == before != weights_fingerprint(found.model)
    assert torch.equal(state, torch.random.get_rng_state())
    hooks = [m for m in found.model.modules() if m._forward_pre_hooks]
    assert hooks == []
    assert layout(remove(found.model, found.mask))["encoder"].total == 6


def test_weights_train_on_with_fixed_gates(model, task, tokenizer):
    found = learn(model, task, Subset(), 0.5, train=SHORT, tokenizer=tokenizer, **LEARN)
    trace = found.trace
    assert found.route["fixed_at_step"] == 7  # 12 steps, the last 40 % to settle
    after = [state for step, state in zip(trace.steps, trace.states, strict=True) if step >= 7]
    assert len(after) > 3
    assert all((state == after[0]).all() for state in after)
    assert [int(s.sum()) for s in trace.states] == [6] * len(trace.states)  # k from the start


def test_the_gap_between_training_and_test_gates(model, task, tokenizer):
    found = learn(model, task, HardConcrete(), 0.5, train=SHORT, tokenizer=tokenizer,
                  device="cpu", gap=2)  # fmt: skip
    assert found.gap is not None
    assert found.gap["draws"] == 2
    assert found.gap["gap"] == pytest.approx(found.gap["train"] - found.gap["test"])
    plain = learn(model, task, HardConcrete(), 0.5, train=SHORT, tokenizer=tokenizer, **LEARN)
    assert plain.gap is None
    assert plain.mask == found.mask  # measuring changes nothing
    assert weights_fingerprint(plain.model) == weights_fingerprint(found.model)
    sure = learn(model, task, StraightThrough(), 0.5, train=SHORT, tokenizer=tokenizer,
                 device="cpu", gap=2)  # fmt: skip
    assert sure.gap is not None
    assert (sure.gap["gap"], sure.gap["draws"]) == (0.0, 1)


@pytest.mark.parametrize(
    "gates",
    [
        StraightThrough(**PLAIN, gate_lr=0.3, mu=0.05),
        HardConcrete(**STEADY, gate_lr=0.3, mu=0.05, hold="shift"),
    ],
    ids=["straight", "concrete"],
)
def test_scores_over_the_run_change_nothing(model, task, tokenizer, gates):
    settings = {"train": SHORT, "tokenizer": tokenizer, **LEARN}
    plain = learn(model, task, gates, **settings)
    scored = replace(gates, score_points=4, score_rows=40)
    found = learn(model, task, scored, **settings)
    assert found.mask == plain.mask
    assert weights_fingerprint(found.model) == weights_fingerprint(plain.model)
    assert found.trace.values[-1].tolist() == plain.trace.values[-1].tolist()
    losses = [p["loss"] for p in found.trace.scores if "loss" in p]
    assert losses == [p["loss"] for p in plain.trace.scores]
    points = [p for p in found.trace.scores if "score" in p]
    assert [p["step"] for p in points] == [0, 3, 6, 9, 12]
    assert {p["n"] for p in points} == {40}
    states = dict(zip(found.trace.steps, found.trace.states, strict=True))
    assert [p["open"] for p in points] == [int(states[p["step"]].sum()) for p in points]
    scoring = Scoring(limit=40, seed=SHORT.seed, bootstrap=0)
    how: dict[str, Any] = {"tokenizer": tokenizer, "scoring": scoring}
    assert points[0]["score"] == evaluate(model, task, **how).score
    assert points[-1]["score"] == evaluate(found.model, task, found.mask, **how).score


@pytest.mark.parametrize(
    "method",
    [partial(StraightThrough, **FAST), partial(HardConcrete, **STEADY, gate_lr=0.5, hold="shift")],
    ids=["straight", "concrete"],
)
def test_a_score_is_that_of_the_test_gates(planted, tokenizer, method):
    model, task, _ = planted
    gates = method(score_points=4, score_rows=96, trace=60)
    found = learn(model, task, gates, PLANTED, train=STILL, tokenizer=tokenizer, **LEARN)
    points = [p for p in found.trace.scores if "score" in p]
    assert [p["step"] for p in points] == [0, 15, 30, 45, 60]
    assert (points[0]["open"], points[-1]["open"]) == (12, 4)
    states = dict(zip(found.trace.steps, found.trace.states, strict=True))
    masks = [
        Mask(layout(model), frozenset(
            head for head, there in zip(layout(model), states[p["step"]], strict=True) if there
        ))
        for p in points
    ]  # fmt: skip
    alone = evaluate(model, task, masks, tokenizer=tokenizer, scoring=Scoring(bootstrap=0))
    assert [p["score"] for p in points] == pytest.approx([e.score for e in alone], abs=1e-3)


def test_no_score_points_without_rows_of_their_own(model, task, tokenizer):
    trained_on = replace(task, splits=("train",), evaluation="train")
    gates = Subset(score_points=2)
    with pytest.raises(UsageError, match="no rows but those of training"):
        learn(model, trained_on, gates, 0.5, train=SHORT, tokenizer=tokenizer, **LEARN)


def words() -> Any:
    return AutoTokenizer.from_pretrained(locate("pocket-bert"))


@pytest.mark.parametrize(
    ("family", "name"),
    [("llama", "pocket-corpus"), ("bart", "pocket-translation"), ("albert", "pocket-corpus"),
     ("gpt2", "pocket-corpus")],
)  # fmt: skip
@pytest.mark.parametrize("kind", [StraightThrough(), Subset()], ids=["straight", "subset"])
def test_decoders_encoder_decoders_and_shared_layers(family, name, kind):
    tokenizer = words()
    settings = {"vocab_size": len(tokenizer), "pad_token_id": 0}
    model = build(family, **settings)
    task = open_task(name, size=48)
    if family in ("llama", "gpt2"):
        task = replace(task, kind="causal-lm")
    train = replace(SHORT, steps=4)
    found = learn(model, task, kind, 0.5, train=train, tokenizer=tokenizer, **LEARN)
    assert len(found.mask) == layout(model).kept_at(0.5)
    small = remove(found.model, found.mask)
    assert len(layout(small)) == len(found.mask)
    assert found.trace.values[-1].tolist() != found.trace.values[0].tolist()


def test_the_config_of_the_model_given_stays_as_it_was(tokenizer):
    model = build("gpt2", vocab_size=len(tokenizer), pad_token_id=None)
    before = model.config.to_dict()
    task = replace(open_task("pocket-corpus", size=32), kind="causal-lm")
    found = learn(
        model, task, Subset(), 0.5, train=replace(SHORT, steps=1), tokenizer=tokenizer, **LEARN
    )
    assert model.config.to_dict() == before
    assert found.model.config.pad_token_id == tokenizer.pad_token_id


def test_all_gates_closed(model, task, tokenizer, tmp_path):
    gates = StraightThrough(**PLAIN, gate_lr=50.0, mu=1.0)
    with pytest.raises(
        HeadcountError, match=r"All gates closed at step \d+.*mu.*last open"
    ) as told:
        learn(model, task, gates, train=SHORT, tokenizer=tokenizer, out=tmp_path, **LEARN)
    kept = Mask.from_json(json.loads((tmp_path / "last-open.json").read_text()))
    assert len(kept) > 0
    assert kept.pattern in str(told.value)
    assert isinstance(told.value, AllClosedError)
    assert told.value.step == 1
    assert told.value.model is not None
    assert told.value.model is not model
    # the weights have not taken the step that closed the gates
    assert weights_fingerprint(told.value.model) == weights_fingerprint(model)
    assert all(not module._forward_pre_hooks for module in model.modules())


def test_a_loss_that_is_no_number(model, task, tokenizer):
    with torch.no_grad():
        model.classifier.weight.fill_(float("nan"))
    with pytest.raises(HeadcountError, match=r"not a number \(NaN or infinite\) at step 1"):
        learn(model, task, StraightThrough(), 0.5, train=SHORT, tokenizer=tokenizer, **LEARN)


def test_ratios_that_cannot_be_met(model, task, tokenizer):
    with pytest.raises(UsageError, match="leaves no head"):
        learn(model, task, Subset(), 1.0, tokenizer=tokenizer, **LEARN)
    with pytest.raises(UsageError, match="between 0 and 1"):
        learn(model, task, Subset(), 1.5, tokenizer=tokenizer, **LEARN)
    grouped = build("llama", vocab_size=len(tokenizer), num_hidden_layers=1, num_attention_heads=8)
    corpus = replace(open_task("pocket-corpus", size=20), kind="causal-lm")
    with pytest.raises(UsageError, match="Cannot keep exactly 7 of 8"):
        learn(grouped, corpus, Subset(), 0.125, tokenizer=tokenizer, **LEARN)


def test_a_finished_run_is_not_done_again(model, task, tokenizer, tmp_path: Path):
    settings = {"train": SHORT, "tokenizer": tokenizer, "out": tmp_path, **LEARN}
    first = learn(model, task, Subset(), 0.5, **settings)
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"gates.npz", "mask.json", "result.json", "settings.json", "curve.jsonl"}
    assert not [name for name in names if name.startswith("checkpoint")]
    again = learn(model, task, Subset(), 0.5, **settings)
    assert again.seconds == pytest.approx(first.seconds, abs=1e-3)
    assert (again.mask, again.route) == (first.mask, first.route)
    assert weights_fingerprint(again.model) == weights_fingerprint(first.model)
    with pytest.raises(UsageError, match=r"ratio was 0\.5, now 0\.25"):
        learn(model, task, Subset(), 0.25, **settings)


@pytest.mark.parametrize("killed", ["in step 8", "before its last files"])
def test_a_run_that_goes_on_leaves_the_trace_of_an_undisturbed_one(
    killed, task, tokenizer, tmp_path: Path, monkeypatch
):
    # 12 steps of 6 an epoch would end with an epoch; 11 do not
    train = replace(SHORT, steps=11, log_every=4, save_every=3)
    settings = {"train": train, "tokenizer": tokenizer, **LEARN}
    learn(tiny(tokenizer), task, HardConcrete(), 0.5, out=tmp_path / "a", **settings)
    stopped = tiny(tokenizer)
    if killed == "in step 8":
        interrupt(stopped, 7)
    else:
        monkeypatch.setattr(LearnedGates, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learn(stopped, task, HardConcrete(), 0.5, out=tmp_path / "b", **settings)
    monkeypatch.undo()
    again = learn(tiny(tokenizer), task, HardConcrete(), 0.5, out=tmp_path / "b", **settings)
    assert again.resumed_from == (6 if killed == "in step 8" else 11)
    assert again.steps == 11
    for name in ("gates.npz", "weights.safetensors", "curve.jsonl", "mask.json", "settings.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def interrupted(*_):
    raise KeyboardInterrupt


def test_a_run_is_not_mixed_with_another_and_has_one_writer(task, tokenizer, tmp_path: Path):
    settings = {"train": SHORT, "tokenizer": tokenizer, "out": tmp_path, **LEARN}
    with pytest.raises(KeyboardInterrupt):
        learn(interrupt(tiny(tokenizer), 3), task, Subset(), 0.5, **settings)
    other = tiny(tokenizer, hidden_act="relu")
    advice = r"config.hidden_act was gelu, now relu\. .* or delete it to start over"
    with pytest.raises(UsageError, match=advice):
        learn(other, task, Subset(), 0.5, **settings)
    with locked(tmp_path), pytest.raises(UsageError, match="is being worked on by process"):
        learn(tiny(tokenizer), task, Subset(), 0.5, **settings)


def learned() -> LearnedGates:
    model = build("bert", num_hidden_layers=1)
    trace = Trace(layout(model))
    trace.note(0, np.zeros(4), np.ones(4, bool))
    mask = Mask.of(layout(model), [("encoder", 0, 2)])
    return LearnedGates(
        model=model, mask=mask, trace=trace, steps=3, rows=8, examples=24, seconds=1.5, route={}
    )


def test_what_was_saved_is_had_again_with_its_weights(tmp_path: Path) -> None:
    one = learned()
    other = build("bert", num_hidden_layers=1, seed=5)
    with pytest.raises(NotFoundError, match="Cannot read the weights"):
        finished(other, tmp_path)
    one.save(tmp_path)
    again = finished(other, tmp_path)
    assert (again.mask, again.steps, again.examples) == (one.mask, 3, 24)
    assert again.trace.steps == [0]
    for mine, theirs in zip(one.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_a_damaged_result_is_refused(tmp_path: Path) -> None:
    one = learned()
    one.save(tmp_path)
    data = json.loads((tmp_path / "result.json").read_text())
    (tmp_path / "result.json").write_text(json.dumps({**data, "steps": "three"}))
    with pytest.raises(HeadcountError, match=r"result\.json is no result"):
        finished(one.model, tmp_path)
