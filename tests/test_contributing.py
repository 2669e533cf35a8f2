"""docs/design.md tells where a new method, distance, task and option go: done here as written."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import headcount as hc
from headcount.likeness.distances import DISTANCES
from headcount.pruning.methods import METHODS
from headcount.repair.repairs import REPAIRS
from headcount.tasks.catalog import TASKS
from headcount.tasks.kinds import TASK_KINDS

DESIGN = (Path(__file__).parent.parent / "docs" / "design.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", DESIGN, re.M | re.S)
METHOD, LINE, REPAIR, REPAIR_LINE, DISTANCE, TASK, KIND, KIND_LINE = BLOCKS[:8]


@pytest.fixture
def longest(registered, monkeypatch, tmp_path):
    """The method of the page, in a file of its own."""
    (tmp_path / "headcount_longest.py").write_text(METHOD, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    exec(LINE.replace("headcount.pruning.longest", "headcount_longest"), {"METHODS": METHODS})
    yield METHODS["longest"]
    sys.modules.pop("headcount_longest", None)


def test_a_method_is_one_file_and_one_line(longest, cli, tmp_path, monkeypatch):
    assert len(METHOD.splitlines()) <= 45
    model = hc.load("pocket")
    mask = hc.select(model, longest(power=1.0), 0.5)
    assert len(mask) == 24
    assert mask == hc.select(model, "longest", 0.5, power=1.0) != hc.select(model, "longest", 0.5)
    help = cli("prune", "--method", "longest", "--help").out
    assert "--power" in help
    assert "Which norm of the weights counts" in " ".join(help.split()).replace("which", "Which")
    out = tmp_path / "small"
    asked = ("--method", "longest", "--ratio", 0.5, "--power", 1.0, "--out", out, "--json")
    ran = cli("prune", "pocket", *asked)
    assert ran.code == 0, ran.err
    record = json.loads(ran.out)
    assert record["options"] == {"power": 1.0}
    assert record["heads"]["kept"] == mask.pattern
    assert hc.load_record(out).run.options.method == longest(power=1.0)
    assert "longest" in cli("ls", "methods").out


def test_a_repair_is_one_file_and_one_line(registered, cli, tmp_path, monkeypatch):
    (tmp_path / "headcount_damp.py").write_text(REPAIR, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    exec(REPAIR_LINE.replace("headcount.repair.damp", "headcount_damp"), {"REPAIRS": REPAIRS})
    for command in ("prune", "curve", "search"):
        assert "--factor FLOAT" in cli(command, "--help").out
    (tmp_path / "texts.txt").write_text("the cat saw the dog\n" * 8, encoding="utf-8")
    asked = (
        "--method",
        "random",
        "--ratio",
        0.5,
        "--calibration",
        tmp_path / "texts.txt",
        "--json",
    )
    steps = ("--repair", "recover,damp", "--factor", 0.5, "--ridge", 0.01)
    ran = cli("prune", "pocket", *asked, *steps, "--out", tmp_path / "small")
    assert ran.code == 0, ran.err
    recover, damp = json.loads(ran.out)["repair"]
    assert (recover["name"], recover["options"]["ridge"]) == ("recover", 0.01)
    assert (damp["name"], damp["options"], damp["layers"]) == ("damp", {"factor": 0.5}, 6)
    steps = hc.load_record(tmp_path / "small").run.options.repair
    assert [type(step).__name__ for step in steps] == ["Recover", "Damp"]
    recovered = ("--repair", "recover", "--ridge", 0.01, "--out", tmp_path / "b")
    plain = cli("prune", "pocket", *asked, *recovered)
    assert plain.code == 0, plain.err
    halved, whole = (hc.load(tmp_path / name).state_dict() for name in ("small", "b"))
    name = next(each for each in whole if each.endswith("attention.output.dense.weight"))
    assert np.allclose(halved[name], whole[name] * 0.5)
    assert "damp" in cli("ls", "repairs").out
    sys.modules.pop("headcount_damp", None)


def test_a_distance_is_one_function_and_one_line(registered, cli, tmp_path):
    exec(DISTANCE, {"np": np, "DISTANCES": DISTANCES})
    ran = cli("redundancy", "pocket", "--random", 4, "--distances", "tops", "--json")
    assert ran.code == 0, ran.err
    assert "tops" in ran.out


def test_a_task_is_one_file_and_one_line(registered, cli, tmp_path, monkeypatch):
    (tmp_path / "headcount_weather.py").write_text(
        "from headcount.tasks.task import Examples, Task\n" + TASK.partition("TASKS.add")[0],
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    line = "TASKS.add" + TASK.partition("TASKS.add")[2]
    exec(line.replace("headcount.tasks.weather", "headcount_weather"), {"TASKS": TASKS})
    ran = cli("train", "pocket", "--task", "weather", "--steps", 1, "--dry-run", "--out", "x")
    assert ran.code == 0, ran.err
    assert "weather" in ran.out


WHICH = """
from headcount.tasks.task import Examples, Task

def which(source):
    import numpy as np
    labels = np.arange(60) % 3 % 2
    pairs = [("the cat sleeps", "the dog sees the king")[:: 1 - 2 * label] for label in labels]
    return Task(name="which", kind="choice", texts=("first", "second"), labels=("first", "second"),
                metrics=("accuracy",), loader=lambda split: Examples(tuple(zip(*pairs)), labels))
"""


def test_a_kind_of_task_is_one_file_and_one_line(registered, cli, tmp_path, monkeypatch):
    assert len(KIND.splitlines()) <= 50
    (tmp_path / "headcount_choice.py").write_text(KIND, encoding="utf-8")
    (tmp_path / "headcount_which.py").write_text(WHICH, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    line = KIND_LINE.replace("headcount.tasks.kinds.choice", "headcount_choice")
    exec(line, {"TASK_KINDS": TASK_KINDS})
    TASKS.add("which", "headcount_which:which", "which of two texts")
    run, small = tmp_path / "run", tmp_path / "small"
    train = ("--task", "which", "--steps", 20, "--preset", "pocket", "--out", run)
    ran = cli("train", "pocket", *train)
    assert ran.code == 0, ran.err
    ran = cli("evaluate", run, "--task", "which", "--json")
    assert ran.code == 0, ran.err
    before = json.loads(ran.out)
    assert before["n"] == 60
    assert before["scores"]["accuracy"]["value"] == 1.0, before["scores"]
    cut = ("--method", "surgeon", "--ratio", 0.5, "--task", "which", "--recover", "--out", small)
    ran = cli("prune", run, *cut, "--json")
    assert ran.code == 0, ran.err
    record = json.loads(ran.out)
    assert record["heads"]["after"] == 24, record["heads"]
    assert record["scores"]["n"] == 60
    ran = cli("importance", small, "--task", "which", "--calibration-samples", 20, "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["n"] == 20


@dataclass(frozen=True, kw_only=True)
class WithOption(METHODS["random"]):  # type: ignore[misc]
    """A method that has got one more field."""

    needs: ClassVar = "nothing"
    tilt: float = 0.0
    """How much more the later layers are cut."""


def test_an_option_is_one_field(registered, cli):
    METHODS._entries.pop("random")
    METHODS.add("random", WithOption, "drawn")
    help = cli("prune", "--method", "random", "--help").out
    assert "--tilt FLOAT" in help
    assert "[default: 0]" in help
