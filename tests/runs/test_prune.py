from __future__ import annotations

import json
from dataclasses import replace

import datasets
import pytest
import torch
from torch.utils.data import DataLoader

import headcount as hc
from headcount.base.errors import UsageError
from headcount.models.find import layout
from headcount.models.probe import probe_inputs
from headcount.tasks import open_task
from headcount.training.evaluate import evaluate
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring
from models.zoo import build
from runs.flat import prune


def test_the_record_says_what_was_done(model, task, tokenizer, tmp_path):
    found = prune(
        model, "importance", 0.5, task=task, tokenizer=tokenizer, out=tmp_path / "small",
        options={"normalize": "l2"}, samples=20, bootstrap=20,
    )  # fmt: skip
    record = json.loads((tmp_path / "small" / "record.json").read_text())
    assert record == json.loads(json.dumps(found.record.to_json()))
    assert record["options"] == {"normalize": "l2"}
    assert record["heads"] == {"before": 12, "after": 6, "kept": found.mask.pattern}
    assert record["scores"]["before"]["score"] == evaluate(model, task, tokenizer=tokenizer).score
    assert record["scores"]["after"]["score"] == pytest.approx(
        evaluate(model, task, found.mask, tokenizer=tokenizer).score
    )
    assert layout(found.model)["encoder"].heads == found.mask.counts()["encoder"]


def test_random_cuts_are_repaired_alike(model, task, tokenizer):
    with torch.no_grad():  # fresh weights answer the same to everything, whichever heads are gone
        for weight in model.bert.encoder.parameters():
            weight.mul_(8 if weight.ndim == 2 else 1)
    how = {"task": task, "tokenizer": tokenizer, "samples": 40, "bootstrap": 0, "baseline": 2}
    plain = prune(model, "random", 0.75, **how).record["scores"]
    solved = prune(model, "random", 0.75, recover=True, **how).record["scores"]
    assert plain["random"]["kept"] == solved["random"]["kept"]
    assert plain["random"]["scores"] != solved["random"]["scores"]


def test_no_task_no_scores():
    found = prune(build("t5"), "pattern", options={"keep": "8,9,10"}, baseline=5)
    assert "scores" not in found.record
    assert [sum(counts) for counts in found.mask.counts().values()] == [8, 9, 10]


def test_inputs_that_are_given():
    batches = [probe_inputs(build("vit"), batch=4, seed=seed) for seed in range(6)]
    found = prune(build("vit"), "cluster", 0.5, recover=True, rows=batches)
    assert found.record["repair"][0]["layers"]
    assert len(found.mask) == 8


@pytest.mark.parametrize("method", ["surgeon", "meta", "cluster"])
def test_methods_without_labels_take_texts_in_place_of_a_task(method, tmp_path):
    """On the model as it is saved: what it predicts is all that is asked of it."""
    (tmp_path / "texts.txt").write_text("the cat saw the dog\nthe king sleeps\n" * 4)
    (tmp_path / "other.txt").write_text("a dog sees the big cat\n" * 3)
    first, second = (
        prune("pocket", method, 0.5, rows=tmp_path / name) for name in ("texts.txt", "other.txt")
    )
    assert first.record["heads"]["after"] == 24
    rows = first.record["rows"]["calibration"]
    assert (rows["split"], rows["n"]) == ("given", 8)
    assert rows["fingerprint"] != second.record["rows"]["calibration"]["fingerprint"]


def test_a_record_says_which_texts_of_a_file_were_drawn(tmp_path):
    words = ("cat", "dog", "king", "doctor", "bird", "judge", "baker")
    lines = [f"the {one} sees the {other}" for one in words for other in words]
    (tmp_path / "texts.txt").write_text("\n".join(lines) + "\n")
    given = {"rows": tmp_path / "texts.txt", "samples": 8, "repair": (hc.Recover(),)}
    first, again, other = (
        prune("pocket", "surgeon", 0.5, seed=seed, **given).record for seed in (0, 0, 1)
    )
    for record, seed in ((first, 0), (other, 1)):
        used = record["rows"]["calibration"]
        assert (used["split"], used["n"], used["seed"]) == ("given", 8, seed)
        assert record["rows"]["repair"] == used
    assert first["rows"] == again["rows"] != other["rows"]


def test_texts_that_are_given_go_before_the_rows_of_the_task(model, task, tokenizer):
    given = {"rows": ["the cat saw the dog"] * 4, "samples": 16, "bootstrap": 0, "baseline": 0}
    found = prune(model, "surgeon", 0.5, task=task, tokenizer=tokenizer, **given)
    assert found.record["rows"]["calibration"]["split"] == "given"
    bare = prune(model, "surgeon", 0.5, tokenizer=tokenizer, rows=given["rows"])
    assert bare.mask == found.mask


def test_refusals(model, task, tmp_path):
    with pytest.raises(UsageError, match="not loaded from a folder"):
        prune(model, "random", 0.5, task=task)
    with pytest.raises(UsageError, match="between 0 and 1"):
        prune(model, "cluster", -1)
    with pytest.raises(UsageError, match="needs a task"):
        prune(model, "random", 0.5, finetune=True)
    with pytest.raises(UsageError, match="'recover' needs inputs"):
        prune(model, "random", 0.5, recover=True)
    (tmp_path / "x").write_text("")
    with pytest.raises(UsageError, match="new or empty"):
        prune(model, "random", 0.5, out=tmp_path)


def test_the_seed_is_that_of_the_rows_that_are_scored(model, task, tokenizer):
    how = {"task": task, "tokenizer": tokenizer, "limit": 20, "bootstrap": 0, "baseline": 0}
    found = prune(model, "random", 0.5, seed=9, **how).record["scores"]["before"]
    for seed, same in ((9, True), (0, False)):
        scored = evaluate(
            model, task, tokenizer=tokenizer, scoring=Scoring(limit=20, seed=seed, bootstrap=0)
        )
        assert (found["rows"] == scored.rows) == same


def test_what_is_best_without_training_is_the_default(model, task, tokenizer, caplog):
    how = {"tokenizer": tokenizer, "samples": 16, "bootstrap": 0, "baseline": 0}
    found = prune(model, ratio=0.5, task=task, **how)
    assert (found.record["method"], found.record["repair"][0]["name"]) == ("surgeon", "recover")
    named = prune(model, "surgeon", 0.5, task=task, recover=True, **how)
    assert found.mask == named.mask
    assert "heads are chosen by 'surgeon'" in found.record["notes"][0]
    assert found.record["notes"][0] in caplog.messages
    assert not any("surgeon" in text for text in named.record["notes"])
    assert not prune(model, ratio=0.5, task=task, recover=False, **how).record["repair"]
    bare = prune(model, ratio=0.5)
    assert (bare.record["method"], bare.record["repair"]) == ("cluster", [])
    assert "Nothing is scored" in bare.record["notes"][0]


@pytest.mark.parametrize("method", [None, "cluster", "random", "importance", "straight-through"])
def test_how_many_heads_go_is_for_the_user_to_say(model, task, tokenizer, method):
    with pytest.raises(UsageError, match="--ratio"):
        prune(model, method, task=task, tokenizer=tokenizer)


def test_a_method_that_can_may_decide_if_it_is_asked_to(model):
    found = prune(model, "cluster", "free")
    assert 0 < len(found.mask) < 12
    assert found.record["ratio"] == "free"
    with pytest.raises(UsageError, match="needs a ratio"):
        prune(model, "random", "free")


def test_the_loss_has_the_interval_of_the_difference_on_the_same_rows(model, task, tokenizer):
    found = prune(model, "random", 0.75, task=task, baseline=0, tokenizer=tokenizer, bootstrap=40)
    before, after = (
        evaluate(each, task, tokenizer=tokenizer, scoring=Scoring(bootstrap=40))
        for each in (model, found.model)
    )
    loss = hc.difference(before, after, bootstrap=40)
    assert found.record["scores"]["difference"] == loss.to_json()
    assert loss.value == pytest.approx(after.score - before.score)


def test_the_record_says_which_rows_decided_repaired_and_scored(model, task, tokenizer):
    how = {"task": task, "tokenizer": tokenizer, "samples": 20, "bootstrap": 0, "baseline": 2}
    one = prune(model, "importance", 0.5, recover=True, limit=30, seed=3, **how).record["rows"]
    assert list(one) == ["calibration", "repair", "evaluation"]
    assert one["calibration"] == one["repair"]
    assert {"split": "train", "n": 20, "seed": 3}.items() <= one["calibration"].items()
    assert {"split": "dev", "n": 30, "seed": 3}.items() <= one["evaluation"].items()
    other = prune(model, "importance", 0.5, recover=True, limit=30, seed=4, **how).record["rows"]
    for use in one:
        assert one[use]["fingerprint"] != other[use]["fingerprint"]


def test_rows_that_decided_and_are_scored_are_told(model, task, tokenizer, tmp_path):
    said: list[str] = []
    how = {"task": task, "tokenizer": tokenizer, "samples": 90, "bootstrap": 0, "note": said.append}
    found = prune(model, "importance", 0.5, split="train", baseline=0, out=tmp_path / "a", **how)
    assert said == found.record["notes"]
    assert "The rows of calibration are of train, which is scored" in said[0]
    assert said[0] in (tmp_path / "a" / "README.md").read_text()
    assert prune(model, "random", 0.5, split="train", baseline=0, **how).record["notes"] == []


def test_too_few_tokens_for_recovery_are_told(model, task, tokenizer):
    how = {"task": task, "tokenizer": tokenizer, "bootstrap": 0, "baseline": 2, "recover": True}
    few = prune(model, "random", 0.5, samples=2, **how).record
    (told,) = few["notes"]
    tokens = few["repair"][0]["layers"][0]["tokens"]
    assert f"Recovery had {tokens} tokens for" in told
    assert few["repair"][0]["layers"][0]["unknowns"] <= 4 * 8 + 1
    assert prune(model, "random", 0.5, samples=96, **how).record["notes"] == []


def test_a_cut_that_is_not_better_than_random_says_so(model, task, tokenizer, tmp_path):
    how = {"task": task, "tokenizer": tokenizer, "bootstrap": 0, "out": tmp_path / "a"}
    found = prune(model, "importance", 1.0, **how).record  # no head is left, nor at random
    (told,) = found["notes"]
    assert "not better than random" in told
    assert found["scores"]["random"]["beaten"] is False
    assert told in (tmp_path / "a" / "README.md").read_text()


def test_of_perplexity_the_least_is_best(tokenizer):
    model = build("gpt2", vocab_size=len(tokenizer))
    task = replace(open_task("pocket-corpus"), kind="causal-lm", metrics=("perplexity",))
    how = {"limit": 20, "bootstrap": 0, "baseline": 3, "max_length": 16}
    found = prune(model, "random", 0.75, task=task, tokenizer=tokenizer, **how)
    scores = found.record["scores"]
    assert scores["metric"] == "perplexity"
    assert scores["random"]["best"] == min(scores["random"]["scores"])


@pytest.mark.parametrize("kind", ["texts", "tokenised", "dataset", "loader", "file"])
def test_what_is_looked_at_may_come_as_people_have_it(model, task, tokenizer, tmp_path, kind):
    texts = [f"the king sees a cat near the {word}" for word in ("queen", "baker", "dog") * 8]
    tokens = tokenizer(texts)
    (tmp_path / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    data = {
        "texts": lambda: texts,
        "tokenised": lambda: [{"input_ids": ids} for ids in tokens["input_ids"]],
        "dataset": lambda: datasets.Dataset.from_dict({"text": texts}),
        "loader": lambda: DataLoader([dict(tokenizer(texts, return_tensors="pt", padding=True))],
                                     batch_size=None),
        "file": lambda: tmp_path / "texts.txt",
    }  # fmt: skip
    how = {"tokenizer": tokenizer, "recover": True, "baseline": 0, "note": lambda text: None}
    found = prune(model, "random", 0.5, rows=data[kind](), **how)
    assert found.record["repair"][0]["layers"][0]["tokens"] == sum(map(len, tokens["input_ids"]))
    assert found.record["rows"]["repair"]["split"] == "given"


def test_what_is_no_data_is_one_sentence(model, tokenizer):
    with pytest.raises(UsageError, match="Data are"):
        prune(model, "random", 0.5, rows=7, recover=True, tokenizer=tokenizer)


def test_gates_have_the_training_of_the_repair_unless_they_are_given_their_own(
    model, task, tokenizer
):
    how = {"task": task, "tokenizer": tokenizer, "baseline": 0, "bootstrap": 0, "device": "cpu"}

    def trained(**given):
        record = prune(model, "straight-through", 0.5, **how, **given).record
        return record.run.options.learning, record["budget"]["steps"]

    own, after = TrainOptions(steps=1), TrainOptions(steps=2)
    assert trained(finetune=after) == (None, 2)  # the repair's, and nothing trains after it
    assert trained(finetune=after, learning=own) == (own, 3)
    assert trained()[0] == TrainOptions()


def test_uniform_layers_are_compared_with_layers_that_may_differ(model, task, tokenizer, tmp_path):
    """The free choice of as many heads, removed, repaired and scored on its own."""
    how = {"task": task, "tokenizer": tokenizer, "repair": "recover", "baseline": 1}
    given = {"calibration": hc.Calibration(samples=24), "scoring": Scoring(bootstrap=20)}
    out = tmp_path / "alike"
    made = hc.prune(model, "magnitude", 0.4, uniform=True, out=out, **how, **given)
    record = json.loads((out / "record.json").read_text())
    free, scores = record["scores"]["free"], record["scores"]
    assert made.mask.pattern == "333"
    assert record["run"]["options"]["uniform"] is True
    other = hc.prune(model, "magnitude", 0.25, **how, **given)
    assert free["kept"] == other.mask.pattern != "333"
    assert free["score"]["score"] == other.record["scores"]["after"]["score"]
    assert free["difference"]["value"] == pytest.approx(
        scores["after"]["score"] - free["score"]["score"]
    )
    assert "uniform" not in other.record.to_json()["run"]["options"]
    assert "free" not in other.record["scores"]
    assert set(scores["random"]["kept"]) == {"333"}
    again = hc.prune(model, "magnitude", 0.4, uniform=True, out=out, **how, **given)
    assert again.mask == made.mask
    with pytest.raises(UsageError, match="uniform"):
        hc.prune(model, "magnitude", 0.4, out=out, **how, **given)


def test_a_repair_says_how_far_it_is(model):
    rows = [probe_inputs(model, batch=4, seed=0)]
    lines: list[str] = []
    hc.prune(model, "random", 0.5, repair="recover", calibration=hc.Calibration(rows=rows),
             report=lines.append)  # fmt: skip
    assert lines[-5:] == ["removing 6 of 12 heads", "repair: recover"] + [
        f"repair: recover, {done} of 3" for done in (1, 2, 3)
    ]
