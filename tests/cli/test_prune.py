from __future__ import annotations

import json
import os

import pytest
import torch
from transformers import AutoTokenizer

import headcount as hc
from headcount.heads import Mask
from headcount.models.find import layout
from headcount.models.load import load
from headcount.models.shipped import locate
from headcount.tasks.metrics import Difference
from models.zoo import build
from training.conftest import tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("model")
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    tiny(tokenizer).save_pretrained(made)
    tokenizer.save_pretrained(made)
    return made


TASK = ("--task", "pocket-sentiment", "--limit", 60, "--calibration-samples", 24, "--bootstrap", 50)


@pytest.mark.parametrize(
    ("more", "kept"),
    [
        (("--method", "random", "--ratio", 0.5), 6),
        (("--method", "random", "--leave", 1), 3),
        (("--method", "pattern", "--keep", "321"), 6),
        (("--method", "layers", "--empty", "top:1"), 8),
        (("--method", "cluster", "--ratio", 0.3), 9),
        (("--ratio", 1), 0),
        (("--ratio", 0), 12),
    ],
)
def test_without_data(cli, folder, tmp_path, more, kept):
    ran = cli("prune", folder, *more, "--out", tmp_path / "small", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    # what is done where nothing was said is told
    assert ran.err == "".join(f"headcount: {note}\n" for note in found["notes"])
    assert ("chosen by 'cluster', which needs no data" in ran.err) == ("--method" not in more)
    assert found["heads"]["after"] == kept
    names = {path.name for path in (tmp_path / "small").iterdir()}
    assert {"config.json", "model.safetensors", "mask.json", "record.json", "README.md"} <= names
    assert "tokenizer.json" in names
    small = load(tmp_path / "small")
    assert len(layout(small)) == kept
    mask = Mask.from_json(json.loads((tmp_path / "small" / "mask.json").read_text()))
    assert mask.pattern == found["heads"]["kept"]
    assert "It was not scored" in (tmp_path / "small" / "README.md").read_text()


def test_a_model_without_a_tokenizer(cli, tmp_path):
    build("llama").save_pretrained(tmp_path / "llama")
    line = ("--method", "cluster", "--ratio", 0.5, "--out", tmp_path / "small")
    ran = cli("prune", tmp_path / "llama", *line, "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["heads"]["after"] == 8


def test_recovery_on_texts(cli, folder, tmp_path):
    (tmp_path / "texts").write_text("the king sees a small cat\n\nthe queen sees the dog\n" * 4)
    line = ("prune", folder, "--ratio", 0.5, "--recover", "--out", tmp_path / "small", "--json")
    ran = cli(*line, "--calibration", tmp_path / "texts")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    (step,) = found["repair"]
    assert (step["name"], step["rows"]) == ("recover", "given")
    assert step["layers"][0]["tokens"] > 20
    assert all(fit["after"] <= fit["before"] for fit in step["layers"])


def test_scored_recovered_and_beside_random(cli, folder, tmp_path):
    line = ("prune", folder, *TASK, "--method", "importance", "--ratio", 0.5, "--recover")
    ran = cli(*line, "--out", tmp_path / "a", "--json")
    assert ran.code == 0, ran.err
    scores = json.loads(ran.out)["scores"]
    assert scores["n"] == 60
    assert scores["after"]["low"] <= scores["after"]["score"] <= scores["after"]["high"]
    assert scores["random"]["draws"] == 3
    assert all(pattern != "444" for pattern in scores["random"]["kept"])
    card = (tmp_path / "a" / "README.md").read_text()
    assert f"{scores['after']['score']:.4f}, 95 % interval" in card
    again = json.loads(cli("evaluate", tmp_path / "a", *TASK[:4], "--json").out)
    assert again["score"] == scores["after"]["score"]
    ran = cli(*line, "--out", tmp_path / "b")
    assert scores["lost"] == str(Difference(**scores["difference"]))
    assert scores["lost"] in ran.out
    assert (
        "Calibrated on 24 rows of train (seed 0), repaired on 24 rows of train (seed 0), "
        in ran.out
    )
    assert "scored on 60 rows of dev (seed 0)." in ran.out
    assert "scored on 60 rows of dev (seed 0)." in card
    assert scores["lost"].replace("[", "\\[").replace("]", "\\]") in card
    assert "importance, recovered" in ran.out
    assert "random, mean of 3" in ran.out
    one, two = load(tmp_path / "a"), load(tmp_path / "b")
    for left, right in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(left, right)


def test_fine_tuned_from_a_model_without_a_task_head(cli, folder, tmp_path):
    bare = load(folder).bert
    bare.save_pretrained(tmp_path / "bare")
    AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / "bare")
    line = ("prune", tmp_path / "bare", *TASK, "--ratio", 0.5, "--baseline", 1)
    short = ("--finetune", "--steps", 2, "--batch-size", 8, "--out", tmp_path / "small", "--json")
    refused = cli(*line, "--method", "random", "--out", tmp_path / "small")
    assert refused.code == 2
    assert "train it first" in refused.err
    refused = cli(*line, "--method", "importance", *short)
    assert refused.code == 2
    assert "before the model is trained" in refused.err
    ran = cli(*line, "--method", "random", *short)
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["repair"][0]["steps"] == 2
    assert found["repair"][0]["options"]["batch_size"] == 8
    assert found["scores"]["random"]["sd"] is None


def test_without_draws_there_are_no_intervals(cli, folder, tmp_path):
    line = ("prune", folder, *TASK[:-1], 0, "--method", "random", "--ratio", 0.5)
    ran = cli(*line, "--baseline", 1, "--out", tmp_path / "a")
    assert ran.code == 0, ran.err
    assert "[" not in ran.out


def test_dry_run(cli, folder, tmp_path):
    line = ("prune", folder, "--ratio", 0.5, "--out", tmp_path / "small", "--dry-run", "--json")
    assert json.loads(cli(*line).out)["kept"] == 6
    assert not (tmp_path / "small").exists()


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (("--method", "clustr", "--ratio", 0.5), 2, "Did you mean 'cluster'"),
        (("--method", "random", "--ratio", 1.5), 2, "between 0 and 1, not 1.5"),
        (("--method", "random"), 2, "needs a ratio: pass --ratio"),
        ((), 2, "needs a ratio: pass --ratio"),
        (("--task", "pocket-sentiment"), 2, "'surgeon' needs a ratio: pass --ratio"),
        (("--method", "cluster"), 2, "or --ratio free"),
        (("--method", "importance", "--ratio", "free"), 2, "needs a ratio"),
        (("--method", "pattern", "--keep", "555"), 2, "keeps 5 heads in encoder layer 0"),
        (("--method", "pattern", "--keep", "44"), 2, "counts 2 layers; the encoder has 3"),
        (("--method", "pattern", "--keep", "cross=2"), 2, "no cross heads"),
        (("--method", "random", "--ratio", 0.5, "--stack", "cross"), 2, "no cross heads"),
        (("--method", "random", "--ratio", 0.5, "--keep", "444"), 2, "--keep is not an option of"),
        (("--method", "importance", "--ratio", 0.5), 2, "needs data with labels"),
        (
            ("--method", "cluster", "--ratio", 1, "--redundancy", "no.npz"),
            4,
            "There is no file 'no.npz'",
        ),
        (("--ratio", 0.5, "--recover"), 2, "'recover' needs inputs like those"),
        (("--ratio", 0.5, "--calibration", "no.txt"), 4, "There is no file 'no.txt'"),
        (("--ratio", 0.5, "--calibration", os.devnull), 4, "it is a device, not a file"),
        (("--ratio", 0.5, "--finetune"), 2, "'finetune' needs a task"),
        (("--method", "pattern", "--keep", ""), 2, "needs heads to keep"),
        (("--ratio", 0.5, "--preset", "finetun"), 2, "Did you mean 'finetune'"),
        (("--ratio", 0.5, "--baseline", "-1"), 2, "not negative"),
        (("--ratio", 0.5, "--task", "pocket-sentimnt"), 2, "Did you mean 'pocket-sentiment'"),
    ],
    ids=lambda value: str(value)[-30:],
)
def test_wrong_usage(cli, folder, tmp_path, more, code, said):
    ran = cli("prune", folder, *more, "--out", tmp_path / "small")
    assert ran.code == code, ran.err
    assert said in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    assert ran.out == ""
    assert not any(tmp_path.iterdir())


def test_a_file_of_inputs_without_a_line_of_text_is_refused(cli, folder, tmp_path):
    (tmp_path / "blank.txt").write_text("\n \n")
    more = ("--ratio", 0.5, "--calibration", tmp_path / "blank.txt", "--out", tmp_path / "small")
    ran = cli("prune", folder, *more)
    assert ran.code == 2
    assert "has no lines with text" in ran.err


def test_a_folder_that_is_there_is_refused_before_any_work(cli, folder):
    ran = cli("prune", "no-such-model", "--ratio", 0.5, "--out", folder)
    assert ran.code == 2
    assert "new or empty folder" in ran.err


def test_an_unwritable_folder_leaves_nothing(cli, folder, tmp_path):
    (tmp_path / "file").write_text("in the way")
    ran = cli("prune", folder, "--ratio", 0.5, "--out", tmp_path / "file" / "small")
    assert ran.code == 1
    assert "Cannot write" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_learned_gates_leave_their_trace_and_figures(cli, folder, tmp_path):
    line = ("prune", folder, *TASK, "--method", "straight-through", "--ratio", 0.5)
    line += ("--steps", 4, "--baseline", 0, "--out", tmp_path / "small")
    ran = cli(*line, "--coarse", "softplus", "--gate-lr", 0.3, "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["heads"]["after"] == 6
    assert found["options"] == {"gate_lr": 0.3, "coarse": "softplus"}
    assert found["learned"]["route"]["rule"].startswith("all values shifted")
    assert found["budget"]["steps"] == 4
    names = {path.name for path in (tmp_path / "small").iterdir()}
    figures = {f"{name}.{end}" for name in ("gates", "gates-path") for end in ("png", "svg")}
    assert {"gates.npz", "record.json", "mask.json"} | figures <= names
    assert [path.name for path in tmp_path.iterdir()] == ["small"]
    ran = cli(*line, "--coarse", "softplus", "--gate-lr", 0.3, "--mu", 0.5)
    assert ran.code == 2
    assert "mu was not there, now 0.5" in ran.err
    assert "new or empty" in ran.err
    ran = cli(*line[:-1], tmp_path / "other", "--mu", 0)
    assert ran.code == 2
    assert "mu must be above 0" in ran.err


def test_the_default_is_the_same_in_the_shell_and_in_python(cli, folder, tmp_path):
    line = ("prune", folder, *TASK, "--ratio", 0.5, "--baseline", 0, "--seed", 3, "--json")
    ran = cli(*line, "--out", tmp_path / "a")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert (found["method"], found["repair"][0]["name"]) == ("surgeon", "recover")
    assert "heads are chosen by 'surgeon'" in ran.err
    python = hc.prune(
        hc.load(folder), ratio=0.5, task="pocket-sentiment", calibration=hc.Calibration(samples=24),
        scoring=hc.Scoring(limit=60, bootstrap=50, seed=3), baseline=0, seed=3,
    )  # fmt: skip
    assert python.mask.pattern == found["heads"]["kept"]
    assert python.record["scores"]["after"]["score"] == found["scores"]["after"]["score"]
    plan = json.loads(cli(*line, "--out", tmp_path / "b", "--dry-run").out)
    assert (plan["method"], plan["repair"], plan["kept"]) == ("surgeon", ["recover"], 6)


def test_the_seed_chooses_the_sample_that_is_scored(cli, folder, tmp_path):
    line = ("prune", folder, *TASK, "--method", "random", "--ratio", 0.5, "--baseline", 0)
    ran = cli(*line, "--seed", 9, "--out", tmp_path / "a", "--json")
    scored = [
        json.loads(cli("evaluate", folder, *TASK[:4], "--seed", seed, "--json").out)["rows"]
        for seed in (0, 9)
    ]
    first, second = (each["evaluation"]["fingerprint"] for each in scored)
    assert json.loads(ran.out)["scores"]["before"]["rows"] == second != first


def test_figures_that_a_kill_left_out_come_with_the_same_command(
    cli, folder, tmp_path, monkeypatch
):
    line = ("prune", folder, *TASK, "--method", "straight-through", "--ratio", 0.5, "--steps", 2)
    line += ("--baseline", 0, "--out", tmp_path / "small", "--json")
    with monkeypatch.context() as patch:
        patch.setattr("headcount.views.figures.save_figure", interrupted)
        assert cli(*line).code == 130
    record = (tmp_path / "small" / "record.json").read_bytes()
    assert not (tmp_path / "small" / "gates.png").exists()
    ran = cli(*line)
    assert ran.code == 0, ran.err
    assert (tmp_path / "small" / "gates.png").stat().st_size > 1000
    assert (tmp_path / "small" / "record.json").read_bytes() == record
    refused = cli(*line, "--seed", 1)
    assert refused.code == 2
    assert "seed was 0, now 1" in refused.err
    assert cli(*line, "--seed", 1, "--overwrite").code == 0
    assert json.loads((tmp_path / "small" / "record.json").read_text())["seed"] == 1


def interrupted(*_):
    raise KeyboardInterrupt


def test_a_cut_that_is_not_better_than_random_says_so(cli, folder, tmp_path):
    line = ("prune", folder, *TASK, "--ratio", 1, "--method", "importance")
    ran = cli(*line, "--out", tmp_path / "a")
    assert ran.code == 0, ran.err
    assert "headcount: This is not better than random" in ran.err
    assert "This is not better than random" in (tmp_path / "a" / "README.md").read_text()


def test_distilled_on_a_tasks_rows(cli, folder, tmp_path):
    line = ("prune", folder, *TASK, "--method", "random", "--ratio", 0.5, "--baseline", 1)
    steps = ("--repair", "recover,distil", "--steps", 3, "--batch-size", 8, "--hidden", 0.5)
    more = ("--learning-rate", 1e-3, "--ridge", 0.01, "--out", tmp_path / "small", "--json")
    ran = cli(*line, *steps, *more)
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    recover, distil = found["repair"]
    assert (recover["name"], recover["options"]["ridge"]) == ("recover", 0.01)
    assert (distil["name"], distil["rows"], distil["steps"]) == ("distil", "pocket-sentiment", 3)
    assert (distil["examples"], distil["held_back"]) == (22, 2)  # 22 rows are 8, 8 and 6
    assert distil["loss"]["after"] > 0
    assert distil["tokens"] > 22
    options = {"hidden": 0.5, "learning_rate": 1e-3, "seed": 0, "max_length": 128}
    assert options.items() <= distil["options"].items()
    assert "training" not in found["rows"]
    assert found["rows"]["repair"]["n"] == 24
    assert found["budget"]["steps"] == 3
    record = hc.load_record(tmp_path / "small")
    assert [type(step).__name__ for step in record.run.options.repair] == ["Recover", "Distil"]
    again = cli(*line, *steps, *more)
    assert again.code == 0, again.err


@pytest.mark.parametrize("repair", ["distil", "lora"])
def test_distilled_on_texts_without_a_task(cli, folder, tmp_path, repair):
    texts = tmp_path / "texts.txt"
    texts.write_text("the king is happy\n\na small cat near the old queen\n" * 8)
    line = ("prune", folder, "--ratio", 0.5, "--repair", repair, "--steps", 2, "--json")
    refused = cli(*line, "--out", tmp_path / "small")
    assert (refused.code, f"'{repair}' needs inputs like those" in refused.err) == (2, True)
    ran = cli(*line, "--calibration", texts, "--out", tmp_path / "small")
    assert ran.code == 0, ran.err
    (step,) = json.loads(ran.out)["repair"]
    assert (step["rows"], step["steps"], step["held_back"]) == ("given", 2, 2)
    assert len(hc.layout(hc.load(tmp_path / "small"))) == 6


def test_a_preset_is_where_a_training_step_begins() -> None:
    from dataclasses import replace

    from headcount.cli.method_options import CUT

    cut = replace(CUT, repair=("distil", "finetune"), preset="pocket")  # pyright: ignore
    distil, finetune = cut.repairs()
    assert (distil.learning_rate, finetune.learning_rate) == (3e-4, 3e-4)
    plain = replace(CUT, repair=("distil",)).repairs()  # pyright: ignore
    assert plain == (replace(hc.Distil(), max_length=128),)
