from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.runs.cutting import PruningRun
from headcount.runs.subject import make_subject
from headcount.studies.search import judging
from headcount.studies.search.search import rows_to_search
from headcount.tasks.task import Examples, Task
from headcount.tasks.within import BoundProbability
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring
from models.sentence_folders import tiny_encoder
from models.zoo import build
from training.conftest import pets, tiny

FAST = hc.SearchOptions(bench=False, seeds=2, first_rows=16)
HOW = {"scoring": Scoring(bootstrap=40), "calibration": hc.Calibration(samples=16), "baseline": 1}


@pytest.fixture(scope="module")
def trained(tokenizer):
    """A model that knows the task, so that heads matter."""
    model = tiny(tokenizer)
    options = TrainOptions(steps=60, batch_size=16, learning_rate=3e-3)
    hc.train(model, pets(rows=400), options=options, tokenizer=tokenizer)
    return model


@pytest.fixture
def asked(trained, tokenizer):
    return {"model": trained, "task": pets(), "tokenizer": tokenizer, "search_options": FAST, **HOW}


@pytest.fixture(scope="module")
def found(trained, tokenizer, tmp_path_factory):
    out = tmp_path_factory.mktemp("search")
    made = hc.search(
        trained, pets(), max_drop="10%", tokenizer=tokenizer, search_options=FAST, out=out, **HOW
    )
    return made, out


def test_the_estimate_is_what_evaluate_gives_on_the_held_out_set(found, tokenizer, trained):
    made, _ = found
    data = made.to_json()
    task = pets()
    scoring = Scoring(split=data["rows"]["held_out"]["split"], bootstrap=40)
    before, after = (
        hc.evaluate(each, task, scoring=scoring, tokenizer=tokenizer)
        for each in (trained, made.model)
    )
    assert (data["full"], data["score"]) == (before.score, after.score)
    lost = hc.difference(before, after, bootstrap=40)
    assert data["difference"] == {"value": lost.value, "low": lost.low, "high": lost.high}
    assert data["within_bound"] == (before.score - after.score <= 0.1 * before.score)
    assert data["kept"] == len(made.mask) < data["heads"] == 12
    assert data["pattern"] == made.mask.pattern
    assert data["ratio"] == pytest.approx(1 - data["kept"] / 12)
    assert data["parameters"]["after"] == made.model.num_parameters()
    chosen, scored = (
        set(task.load(data["rows"][use]["split"]).texts[0]) for use in ("selection", "held_out")
    )
    assert not chosen & scored
    assert len(task.load("dev")) == 96
    assert {data["rows"][use]["split"] for use in ("calibration", "repair")} == {"train"}
    assert data["rows"]["selection"]["n"] + data["rows"]["held_out"]["n"] == 96


def test_the_answer_is_the_fewest_that_was_accepted_on_all_rows(found):
    made, _ = found
    data = made.to_json()
    good = {one["kept"] for one in data["tried"] if one["accepted"]}
    assert data["kept"] == min(good)
    answer = [one for one in data["tried"] if one["kept"] == data["kept"]]
    assert {one["rows"] for one in answer} == {data["rows"]["selection"]["n"]}
    assert data["seed"] in {one["seed"] for one in answer}
    assert data["sentence"] in str(made)


def test_the_folder(found, tokenizer):
    made, out = found
    names = {path.name for path in out.iterdir()}
    assert names == {
        "search.json", "model", "runs", "claims", "work", "studies", "selection.json", "details",
    }  # fmt: skip
    data = json.loads((out / "search.json").read_text())
    assert data == made.to_json()
    asked_for = {"heads", "kept", "ratio", "method", "full", "score", "difference", "bound",
                 "within_bound", "probability", "speedup", "parameters", "rows", "tried", "pattern",
                 "sentence", "seconds", "out"}  # fmt: skip
    assert asked_for <= set(data)
    assert data["speedup"] is None
    assert "its time was not measured" in data["sentence"]
    assert set(data["rows"]) == {"calibration", "repair", "selection", "held_out"}
    ids = {path.parent.name for path in (out / "runs").rglob("record.json")}
    assert ids >= {one["id"] for one in data["tried"]}  # others are on samples of the rows
    plan = json.loads((out / "studies" / "search.json").read_text())
    assert set(plan["runs"]) == ids
    record = hc.load_record(out / "model")
    assert record["heads"]["after"] == data["kept"]
    assert record["scores"]["after"]["score"] == data["score"]
    assert {path.name for path in (out / "model").iterdir()} >= {"mask.json", "README.md"}
    for one in data["tried"]:
        own = hc.load_record(out / "runs" / one["id"])
        assert own["scores"]["difference"]["value"] == pytest.approx(one["difference"]["value"])
        assert own["heads"]["after"] == one["kept"]
        assert own["rows"]["evaluation"]["split"] == "dev:selection:0.5:0"


def test_a_killed_search_ends_as_an_undisturbed_one(asked, found, tmp_path, monkeypatch):
    plain, cuts = PruningRun.cut, []

    def dying(self, decision):
        cuts.append(len(decision.mask))
        if len(cuts) == 3:
            raise KeyboardInterrupt
        return plain(self, decision)

    with monkeypatch.context() as patch:
        patch.setattr(PruningRun, "cut", dying)
        with pytest.raises(KeyboardInterrupt):
            hc.search(max_drop="10%", out=tmp_path, **asked)
    assert not (tmp_path / "search.json").exists()
    again = hc.search(max_drop="10%", out=tmp_path, **asked).to_json()
    whole = found[0].to_json()
    volatile = dict.fromkeys(("seconds", "out", "sum"))  # the sum is over the others, too
    assert {**again, **volatile} == {**whole, **volatile}
    monkeypatch.setattr(PruningRun, "cut", lambda *_: pytest.fail("cut again"))
    told: list[str] = []
    done = hc.search(max_drop="10%", out=tmp_path, note=told.append, **asked)
    assert done.to_json() == again
    assert done.mask == found[0].mask
    assert "nothing is computed again" in told[-1]


def test_another_question_in_the_same_folder_is_refused(asked, found):
    _, out = found
    before = (out / "search.json").read_bytes()
    with pytest.raises(UsageError, match=r"bound was 10 %, now 0\.2"):
        hc.search(max_drop="0.2", out=out, **asked)
    more = {**asked, "search_options": replace(FAST, confidence=0.9)}
    with pytest.raises(UsageError, match=r"confidence was 0\.8, now 0\.9"):
        hc.search(max_drop="10%", out=out, **more)
    assert (out / "search.json").read_bytes() == before


def test_overwriting_leaves_nothing_of_another_search(asked, tmp_path):
    first = hc.search(max_drop="10%", out=tmp_path, **asked)
    second = hc.search(max_drop="60%", out=tmp_path, overwrite=True, **asked)
    assert second.data["kept"] <= first.data["kept"]
    ids = {path.parent.name for path in (tmp_path / "runs").rglob("record.json")}
    assert ids >= {one["id"] for one in second.data["tried"]}
    assert set(json.loads((tmp_path / "studies" / "search.json").read_text())["runs"]) == ids
    assert hc.load_record(tmp_path / "model")["heads"]["after"] == second.data["kept"]


def test_a_bound_that_no_cut_meets_says_how_close_it_came(asked, tmp_path, monkeypatch):
    plain = judging.within

    def never(*args, **how):
        found = plain(*args, **how)
        return BoundProbability(
            difference=found.difference, probability=0.2, possible=0.4, within_bound=False
        )

    monkeypatch.setattr(judging, "within", never)
    found = hc.search(max_drop=0, out=tmp_path, **asked)
    data = found.to_json()
    assert (found.met, found.model, data["within_bound"], data["kept"]) == (False, None, False, 12)
    assert data["sentence"].startswith(
        "No pruning of BertForSequenceClassification on pets is within"
    )
    assert data["nearest"]["kept"] == 11
    assert data["nearest"]["probability"] == 0.2
    assert not (tmp_path / "model").exists()
    assert len(list((tmp_path / "runs").rglob("record.json"))) >= len(data["tried"]) > 3
    again = hc.search(max_drop=0, out=tmp_path, **asked)
    assert again.to_json() == data


def test_the_best_of_several_methods(asked):
    both = hc.search(methods=["random", "surgeon"], max_drop="10%", **asked)
    alone = {
        name: hc.search(methods=[name], max_drop="10%", **asked).data["kept"]
        for name in ("random", "surgeon")
    }
    assert both.data["kept"] == min(alone.values())
    assert {one["method"] for one in both.data["tried"]} == {"random", "surgeon"}
    assert alone[both.data["method"]] == both.data["kept"]


def test_repairs(asked):
    nothing = hc.search(max_drop="10%", repair=(), **asked)
    assert nothing.data["rows"]["repair"] is None
    assert nothing.data["kept"] >= 1
    train = hc.Finetune(steps=2, batch_size=4)
    few = {**asked, "search_options": replace(FAST, seeds=1)}
    trained = hc.search(methods=["random"], max_drop="30%", repair=train, **few)
    assert trained.data["rows"]["training"]["split"] == "train"
    assert {one["rows"] for one in trained.data["tried"]} == {48}


def test_two_splits_by_name(trained, tokenizer, asked):
    task = pets()
    more = replace(
        task, splits=("train", "dev", "test"),
        loader=lambda split: task.loader("dev").take(np.arange(48, 96))
        if split == "test" else task.loader(split),
    )  # fmt: skip
    how = {**asked, "task": more, "search_options": replace(FAST, selection_split="dev")}
    how["scoring"] = Scoring(split="test", bootstrap=40)
    rows = hc.search(max_drop="10%", **how).data["rows"]
    assert (rows["selection"]["split"], rows["held_out"]["split"]) == ("dev", "test")
    assert (rows["selection"]["n"], rows["held_out"]["n"]) == (96, 48)


def rows_task(count: int):
    plain = pets()
    return replace(plain, loader=lambda split: plain.loader(split).take(np.arange(count)))


@pytest.mark.parametrize("count", [1, 2, 15])
def test_too_few_rows_are_refused(trained, tokenizer, count):
    with pytest.raises(UsageError, match=r"two halves|too few rows"):
        hc.search(
            trained, rows_task(count), max_drop="1%", tokenizer=tokenizer, search_options=FAST
        )


def test_rows_on_which_no_loss_has_a_probability_are_refused(tokenizer):
    """Before anything is pruned: 12 windows accepted nothing, after 25 minutes."""
    rng = np.random.default_rng(0)
    lines = [" ".join(rng.choice(["the", "cat", "dog", "king", "sees"], 8)) for _ in range(60)]
    task = Task(
        name="text", kind="causal-lm", texts=("text",), metrics=("perplexity",), packed=True,
        loader=lambda _: Examples((lines,)), splits=("train", "dev"), window=8, stride=8,
    )  # fmt: skip
    model = build("gpt2", vocab_size=len(tokenizer))
    with pytest.raises(UsageError, match=r"perplexity has no probability .* takes 60 rows"):
        hc.search(model, task, max_drop="5%", tokenizer=tokenizer, search_options=FAST)


def test_rows_that_are_all_alike_are_refused(trained, tokenizer):
    plain = pets()

    def loader(split: str) -> Examples:
        return Examples((["the cat"] * 40,), np.zeros(40, dtype=int))

    with pytest.raises(UsageError, match="all are alike"):
        hc.search(trained, replace(plain, loader=loader), max_drop=0, tokenizer=tokenizer)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"max_drop": "lots"}, "1%, 0.01 or 0, not 'lots'"),
        ({"max_drop": "-1%"}, "not negative"),
        ({"max_drop": 0, "max_cache": "0.5x"}, "One bound at a time"),
        ({"max_drop": 0, "methods": ["surgon"]}, "Did you mean 'surgeon'"),
        ({"max_drop": 0, "methods": ["all-heads"]}, "'all-heads' has no ratio"),
        ({"max_drop": 0, "methods": []}, "at least one method"),
        ({"max_drop": 0, "methods": ["random", "random"]}, "named twice"),
        ({"max_latency": "0.8x", "methods": ["random"]}, "along the surgeon's paths"),
        ({"max_drop": 0, "scoring": Scoring(bootstrap=0)}, "so resamples"),
        (
            {"max_drop": 0, "search_options": hc.SearchOptions(selection_split="dev")},
            "are both 'dev'",
        ),
        (
            {"max_drop": 0, "search_options": hc.SearchOptions(selection_split="tset")},
            "no split 'tset'",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_wrong_questions(asked, more, problem):
    how: dict = {**asked, **more}
    if "methods" in how and not how["methods"]:
        how["methods"] = ()
    with pytest.raises(UsageError, match=problem):
        hc.search(**how)


def test_a_search_needs_a_task(trained, tokenizer):
    with pytest.raises(UsageError, match="pass a task"):
        hc.search(trained, max_drop=0, tokenizer=tokenizer)


def test_two_names_of_the_same_rows_are_refused(trained, tokenizer):
    plain = pets()
    same = {"train": "train", "dev": "dev", "test": "dev"}
    task = replace(plain, splits=tuple(same), loader=lambda split: plain.loader(same[split]))
    subject = make_subject(trained, task, tokenizer=tokenizer)
    with pytest.raises(UsageError, match="have the same rows"):
        rows_to_search(subject, Scoring(), replace(FAST, selection_split="test"))


def test_uniform_layers_only(asked, tmp_path):
    """Every number that is tried has as many heads in each layer, and the free choice is beside."""
    made = hc.search(max_drop="30%", uniform=True, out=tmp_path / "found", **asked)
    data = made.to_json()
    assert {size["kept"] for size in data["sizes"]} <= {3, 6, 9}
    assert len(set(made.mask.counts()["encoder"])) == 1
    if "free" in data:
        assert data["free"]["kept"] != data["pattern"]
        assert "layers free to differ" in data["sentence"]


def test_truncated_rows_are_told_once_and_a_model_compared_with_itself_needs_no_rows(
    asked, tokenizer
):
    """All heads have fidelity 1 in every row, which was "cannot be shown on any number of rows"."""
    texts = [str(text) for text in pets(rows=400).load("train").texts[0]]
    task, told = hc.task(texts, kind="embedding"), []
    how = asked | {"model": tiny_encoder(tokenizer), "task": task, "note": told.append}
    how["scoring"] = Scoring(bootstrap=40, max_length=5)
    data = hc.search(max_drop="20%", **how).to_json()
    (truncated,) = [text for text in told if "% of the rows have as many tokens" in text]
    assert truncated in data["notes"]
    assert not any("any number of rows" in text for text in told)
    record = hc.prune(
        how["model"], "random", 0.5, task=task, tokenizer=tokenizer, scoring=how["scoring"],
        baseline=0, note=told.append,
    ).record  # fmt: skip
    assert "as many tokens as --max-length and the model's positions allow, 5" in record["notes"][0]
