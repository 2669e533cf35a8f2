from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from headcount.studies.search import answers, judging
from headcount.tasks import TASKS
from headcount.tasks.source import Source
from headcount.tasks.within import BoundProbability
from headcount.views.page.gather import gather
from headcount.views.page.reading import plain
from headcount.views.page.walk import walk

LINE = ("--task", "pocket-sentiment", "--limit", 24, "--calibration-samples", 16, "--bootstrap", 40)
FEW = (*LINE, "--seeds", 1, "--baseline", 1)
QUICK = (*FEW, "--no-bench")


def test_files_sentence_and_json(cli, folder, tmp_path):
    timing = ("--repeats", 6, "--timing-seconds", 0, "--batch", "1,2", "--length", 5)
    ran = cli("search", folder, *FEW, *timing, "--max-drop", "30%", "--out", tmp_path / "s",
              "--json")  # fmt: skip
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert json.loads((tmp_path / "s" / "search.json").read_text()) == found
    assert {"value", "low", "high"} == set(found["speedup"])
    assert found["sentence"].startswith(f"{folder.name} needs {found['kept']} of its 12 heads on")
    names = {path.name for path in (tmp_path / "s").iterdir()}
    assert names == {
        "search.json", "search.png", "search.svg", "model", "runs", "selection.json", "studies",
        "claims", "work", "details",
    }  # fmt: skip
    assert [shape["batch"] for shape in found["timing"]["shapes"]] == [1, 2]
    assert " at 1 × 5 tokens (FLOPs allow " in found["sentence"]
    table = cli("search", folder, *FEW, *timing, "--max-drop", "30%", "--out",
                tmp_path / "s")  # fmt: skip
    assert table.code == 0
    assert found["sentence"] in table.out
    assert "selected" in table.out
    assert "Calibrated on 16 rows of train" in table.out
    record = json.loads((tmp_path / "s" / "model" / "record.json").read_text())
    assert record["command"].startswith("headcount")
    assert record["heads"]["after"] == found["kept"]


def test_a_bound_that_no_cut_meets_leaves_with_6(cli, folder, tmp_path, monkeypatch):
    plain = judging.within

    def never(*args, **how):
        found = plain(*args, **how)
        return BoundProbability(
            difference=found.difference, probability=0.1, possible=0.4, within_bound=False
        )

    monkeypatch.setattr(judging, "within", never)
    line = ("search", folder, *QUICK, "--max-drop", "0", "--out", tmp_path / "s")
    ran = cli(*line)
    assert ran.code == 6
    assert "No pruning of" in ran.out
    assert "with a probability of 10 %" in ran.out
    assert (tmp_path / "s" / "search.json").is_file()
    assert (tmp_path / "s" / "search.png").is_file()
    again = cli(*line, "--json")
    assert again.code == 6
    assert json.loads(again.out)["within_bound"] is False


def test_a_model_that_loses_more_on_the_held_out_set_leaves_with_6(
    cli, folder, tmp_path, monkeypatch
):
    plain = answers.within

    def not_there(*args, **how):
        return replace(plain(*args, **how), probability=0.3, within_bound=False)

    monkeypatch.setattr(answers, "within", not_there)
    line = ("search", folder, *QUICK, "--max-drop", "50%", "--out", tmp_path / "s", "--json")
    for _ in range(2):  # made, and read again
        ran = cli(*line)
        assert ran.code == 6
        found = json.loads(ran.out)
        assert found["within_bound"] is False
        assert (
            "the loss is not within 50 % here, and on new rows with a probability of 30 %"
            in (found["sentence"])
        )
        assert (tmp_path / "s" / "model" / "model.safetensors").is_file()


def test_a_model_that_guesses_is_said_to(cli, folder, tmp_path):
    ran = cli("search", folder, *QUICK, "--max-drop", "50%", "--out", tmp_path / "s", "--json")
    found = json.loads(ran.out)
    assert found["guess"]["full"]["better"] is False
    assert found["guess"]["value"] >= 0.5
    assert "guessing (accuracy " in found["sentence"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--max-drop", "lots"), "1%, 0.01 or 0, not 'lots'"),
        (("--max-drop=-1%",), "not negative"),
        (("--max-latency", "12"), "or 12ms, not '12'"),
        (("--max-drop", "1%", "--max-parameters", "1M"), "--max-drop and --max-parameters were"),
        (("--max-drop", "1%", "--methods", "surgon"), "Did you mean 'surgeon'"),
        (("--max-drop", "1%", "--methods", "all-heads"), "'all-heads' has no ratio"),
        (("--max-drop", "1%", "--methods", "random,random"), "named twice"),
        (("--max-cache", "0.5x", "--methods", "random"), "along the surgeon's paths"),
        (("--max-drop", "1%", "--held-out", "1"), "between 0 and 1"),
        (("--max-drop", "1%", "--confidence", "2"), "between 0 and 1"),
        (("--max-drop", "1%", "--seeds", "0"), "--seeds is at least 1"),
        (("--max-drop", "1%", "--held-out", "0.001"), "too few rows"),
        (("--max-drop", "1%", "--selection-split", "dev"), "are both 'dev'"),
    ],
    ids=lambda value: " ".join(map(str, value))[:40] if isinstance(value, tuple) else "",
)
def test_wrong_usage(cli, folder, tmp_path, more, said):
    ran = cli("search", folder, *LINE, *more, "--out", tmp_path / "s")
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    assert not (tmp_path / "s").exists()


def test_a_bound_is_refused_before_torch_is_imported():
    code = (
        "import sys; from headcount.cli.main import main; "
        "code = main(['search', 'pocket', '--task', 'pocket-sentiment', '--max-drop', 'x', "
        "'--out', 's']); print(code, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "False"]


def test_dry_run(cli, folder, tmp_path):
    line = ("search", folder, *LINE, "--max-drop", "1%", "--out", tmp_path / "s")
    plan = json.loads(cli(*line, "--dry-run", "--json").out)
    assert (plan["heads"], plan["methods"], plan["max_drop"]) == (12, ["surgeon"], "1%")
    assert not (tmp_path / "s").exists()


def test_without_matplotlib_only_the_figure_is_missing(cli, folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ran = cli("search", folder, *QUICK, "--max-drop", "50%", "--out", tmp_path / "s")
    assert ran.code == 0, ran.err
    assert "There will be no figures." in ran.err
    assert not list((tmp_path / "s").glob("search.png"))


def test_another_bound_in_the_same_folder_is_refused(cli, folder, tmp_path):
    line = ("search", folder, *QUICK, "--out", tmp_path / "s")
    assert cli(*line, "--max-drop", "50%").code == 0
    ran = cli(*line, "--max-drop", "40%")
    assert ran.code == 2
    assert "bound was 50 %, now 40 %" in ran.err
    assert cli(*line, "--max-drop", "40%", "--overwrite").code == 0


@pytest.fixture
def mine(tmp_path):
    """Rows of one's own: a train and a test file with columns that no command could guess."""
    task = TASKS["pocket-sentiment"](Source(size=64))
    (tmp_path / "mine").mkdir()
    for split, name in (("train", "train"), ("dev", "test")):
        rows = task.load(split, limit=64)
        lines = [
            f'"{text}",{label}' for text, label in zip(rows.texts[0], rows.labels, strict=True)
        ]
        (tmp_path / "mine" / f"{name}.csv").write_text("\n".join(["remark,mood", *lines]))
    return tmp_path / "mine"


def test_the_printed_commands_run_in_another_place(cli, folder, mine, tmp_path, monkeypatch):
    shutil.copytree(folder, tmp_path / "model")
    rows = ("--task", "classification", "--data", mine, "--columns", "remark", "--label", "mood")
    few = (
        "--calibration-samples",
        16,
        "--bootstrap",
        40,
        "--seeds",
        1,
        "--baseline",
        1,
        "--no-bench",
    )
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    ran = cli("search", tmp_path / "model", *rows, *few, "--max-drop", "50%", "--out", "found",
              "--json")  # fmt: skip
    assert ran.code == 0, ran.err
    first = json.loads(ran.out)
    (page,) = gather(walk([tmp_path / "here"])).subjects
    card = (tmp_path / "here" / "found" / "model" / "README.md").read_text()
    (fenced,) = re.findall(r"```sh\n(.*)\n```", card)
    assert str(tmp_path) not in fenced
    for place, line in (("there", page.headline.command), ("card", fenced)):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        if place == "card":  # it has no paths of this machine: model and rows lie beside
            shutil.copytree(tmp_path / "model", "model")
            shutil.copytree(mine, "mine")
        program, *words = shlex.split(line)
        assert program == "headcount"
        again = cli(*words)
        assert again.code == 0, again.err
        kept = json.loads((tmp_path / place / "found" / "search.json").read_text())
        same = ("kept", "mask", "score", "difference", "probability")
        assert [kept[name] for name in same] == [first[name] for name in same]


def test_a_test_file_as_dev_is_said_and_recorded_and_no_inner_name_stands_in_a_sentence(
    cli, folder, mine, tmp_path
):
    rows = ("--task", "classification", "--data", mine, "--columns", "remark", "--label", "mood")
    few = (
        "--calibration-samples",
        16,
        "--bootstrap",
        40,
        "--seeds",
        1,
        "--baseline",
        1,
        "--no-bench",
    )
    ran = cli("search", folder, *rows, *few, "--max-drop", "50%", "--out", tmp_path / "s")
    assert ran.code == 0, ran.err
    (note,) = [line for line in ran.err.splitlines() if "test.csv" in line]
    assert "'test.csv' is used as dev" in note
    data = json.loads((tmp_path / "s" / "search.json").read_text())
    model = json.loads((tmp_path / "s" / "model" / "record.json").read_text())
    for kept in (data, model):
        assert [each for each in kept["notes"] if "'test.csv' is used as dev" in each]
    card = (tmp_path / "s" / "model" / "README.md").read_text()
    page = json.dumps(plain(gather(walk([tmp_path / "s"]))))
    assert "half of dev (held-out set, 32 rows)" in ran.out
    assert "half of dev (held-out set" in card
    assert "half of dev (held-out set" in page
    for shown in (ran.out, ran.err, data["sentence"], card, page):
        assert "dev:held-out" not in shown
        assert "dev:selection" not in shown


def test_it_says_how_long_it_takes_and_how_far_it_is(cli, folder, tmp_path, monkeypatch):
    told: list[str] = []
    monkeypatch.setattr("headcount.cli.search.talk", told.append)
    ran = cli("search", folder, *QUICK, "--max-drop", "30%", "--out", tmp_path / "s")
    assert ran.code == 0, ran.err
    assert re.search(r"Trying about \d+ prunings of 12 heads: about \d+ s in all\.", ran.err)
    steps = [line for line in told if "trying" in line]
    assert re.fullmatch(r"surgeon, seed 0: trying \d+ of 12 heads, 1 of about \d+", steps[0])
    assert re.search(r", 2 of about \d+, about \d+ s left$", steps[1])


def test_quick_takes_less_and_says_what_it_leaves_out(cli, folder, tmp_path):
    line = ("search", folder, "--task", "pocket-sentiment", "--bootstrap", 40, "--max-drop", "50%")
    ran = cli(*line, "--quick", "--no-bench", "--out", tmp_path / "s", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    (said,) = [note for note in found["notes"] if note.startswith("--quick")]
    assert said in ran.err
    assert "1 of 3 seeds of a number of heads, 128 of 512 calibration rows, 200 of" in said
    assert "1 of 3 random baselines" in said
    assert "timing" not in said
    assert {len(size["seeds"]) for size in found["sizes"]} == {1}
    assert found["rows"]["calibration"]["n"] == 128
    assert (found["rows"]["selection"]["n"], found["rows"]["held_out"]["n"]) == (200, 200)
    assert found["random"]["draws"] == 1
    again = cli(*line, "--no-bench", "--out", tmp_path / "s")
    assert again.code == 2  # another question


def test_the_probability_of_a_line_is_that_of_all_its_seeds(cli, folder, tmp_path):
    how = ("--max-drop", "20%", "--seeds", 3, "--confidence", "0.6", "--baseline", 2, "--no-bench")
    ran = cli("search", folder, *LINE, *how, "--out", tmp_path / "s", "--json")
    found = json.loads(ran.out)
    assert ran.code in (0, 6), ran.err
    assert len({(size["method"], size["kept"]) for size in found["sizes"]}) == len(found["sizes"])
    assert any(len(size["seeds"]) > 1 for size in found["sizes"])
    for size in found["sizes"]:
        assert size["accepted"] == (size["probability"] >= 0.6)
        own = [one for one in found["tried"] if one["kept"] == size["kept"]]
        assert [one["seed"] for one in own] == size["seeds"]
        mean = sum(one["difference"]["value"] for one in own) / len(own)
        assert size["difference"]["value"] == pytest.approx(mean)
    assert f"heads by surgeon, seed {found['seed']}" in found["sentence"]
    assert f"as many at random: {found['random']['mean']:.3f} in the mean of 2" in found["sentence"]


def test_by_any_executor_it_is_the_same_and_the_command_is_stored(cli, folder, tmp_path):
    line = ("search", folder, *QUICK, "--max-drop", "30%", "--json")
    here = json.loads(cli(*line, "--out", tmp_path / "here").out)
    how = ("--executor", "processes", "--workers", 2)
    ran = cli(*line, *how, "--out", tmp_path / "there")
    assert ran.code == 0, ran.err
    there = json.loads(ran.out)
    left = ("seconds", "out", "sum", "command", "checkpoint")
    assert {k: v for k, v in there.items() if k not in left} == {
        k: v for k, v in here.items() if k not in left
    }
    runs = [{path.name for path in (tmp_path / at / "runs").iterdir()} for at in ("here", "there")]
    assert runs[0] == runs[1] == {one["id"] for one in here["tried"]}
    plan = json.loads((tmp_path / "there" / "studies" / "search.json").read_text())
    assert plan["command"] == there["command"]
    assert set(plan["runs"]) == runs[0]


def test_a_search_finds_the_runs_of_a_curve(cli, folder, tmp_path):
    rows = ("--task", "pocket-sentiment", "--limit", 24, "--calibration-samples", 16)
    rows += ("--bootstrap", 40, "--recover")
    alone = ("search", folder, *rows, "--seeds", 1, "--baseline", 1, "--no-bench")
    alone += ("--max-drop", "30%", "--json", "--out")
    want = json.loads(cli(*alone, tmp_path / "alone").out)
    ratio, rest = (12 - want["tried"][0]["kept"]) / 12, ("--methods", "surgeon", "--seeds", 1)
    half = ("--split", "dev:selection:0.5:0", "--ratios", ratio)
    ran = cli("curve", folder, *rows, *rest, *half, "--out", tmp_path / "s")
    assert ran.code == 0, ran.err
    (run,) = (tmp_path / "s" / "runs").iterdir()
    assert run.name == want["tried"][0]["id"]
    then = (run / "record.json").stat().st_mtime_ns
    ran = cli(*alone, tmp_path / "s")
    assert ran.code in (0, 6), ran.err
    found = json.loads(ran.out)
    assert [found[name] for name in ("kept", "tried", "score")] == [
        want[name] for name in ("kept", "tried", "score")
    ]
    assert (run / "record.json").stat().st_mtime_ns == then
