"""docs/design.md says where something new goes: done here as written, in the files it names."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import headcount as hc
from conftest import Ran
from headcount.exports.formats import FORMATS
from headcount.heads import Layout
from headcount.likeness.distances import DISTANCES
from headcount.pruning.methods import METHODS
from headcount.repair.repairs import REPAIRS
from headcount.runs.kinds import KINDS
from headcount.tasks.catalog import TASKS
from headcount.tasks.kinds import TASK_KINDS
from page.made import study

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "headcount"
DESIGN = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
PARTS = {
    re.findall(r"^\*\*(.*?)\*\*", part)[0].lower(): dict(
        re.findall(r'^```\w+ title="src/headcount/(.*?)"\n(.*?)^```', part, re.M | re.S)
    )
    for part in re.split(r"^(?=\*\*A new )", DESIGN, flags=re.M)[1:]
}
"""What is added -> the files that it takes, with what is written into each."""
REGISTRIES = {
    "METHODS": METHODS, "REPAIRS": REPAIRS, "DISTANCES": DISTANCES, "TASKS": TASKS,
    "TASK_KINDS": TASK_KINDS, "KINDS": KINDS, "FORMATS": FORMATS, "np": np,
}  # fmt: skip


@pytest.fixture
def add(
    registered: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Generator[Callable[[str], None]]:
    """Add a part of the page in this process: files join their packages, lines are executed."""
    names: list[str] = []

    def added(part: str) -> None:
        for file, text in PARTS[part].items():
            if (SOURCE / file).exists():
                exec(text, dict(REGISTRIES))
                continue
            path = tmp_path / "added" / file
            path.parent.mkdir(parents=True)
            path.write_text(text, encoding="utf-8")
            names.append("headcount." + file.removesuffix(".py").replace("/", "."))
            package = importlib.import_module(names[-1].rpartition(".")[0])
            monkeypatch.setattr(package, "__path__", [*package.__path__, str(path.parent)])

    yield added
    for name in names:
        sys.modules.pop(name, None)
        package, _, module = name.rpartition(".")
        vars(sys.modules[package]).pop(module, None)


@pytest.fixture
def patched(tmp_path: Path) -> Callable[[str], Callable[..., Ran]]:
    """Write a part of the page into a copy of the package; gives what runs a command there."""
    copy = tmp_path / "copy"

    def run(*command: object) -> Ran:
        line = [sys.executable, "-m", "headcount", *map(str, command)]
        env = os.environ | {"PYTHONPATH": str(copy)}
        done = subprocess.run(line, capture_output=True, text=True, env=env, check=False)
        return Ran(done.returncode, done.stdout, done.stderr)

    def write(part: str) -> Callable[..., Ran]:
        for folder, _, names in os.walk(SOURCE):
            inside = copy / "headcount" / Path(folder).relative_to(SOURCE)
            inside.mkdir(parents=True, exist_ok=True)
            for name in names:
                if not (inside / name).exists():
                    (inside / name).symlink_to(Path(folder) / name)
        for file, text in PARTS[part].items():
            path = copy / "headcount" / file
            if path.exists():
                text = with_changes(path.read_text(encoding="utf-8"), text)
                path.unlink()
            path.write_text(text, encoding="utf-8")
        return run

    return write


def with_changes(text: str, diff: str) -> str:
    """A file after a diff: where its old lines stand, once, its new ones are put."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        old, new = ("".join(x[1:] for x in lines if x[0] in (" ", sign)) for sign in "-+")
        assert text.count(old) == 1, f"not there once:\n{old}"
        text = text.replace(old, new)
    return text


def test_how_many_files_something_new_takes() -> None:
    assert {part: len(files) for part, files in PARTS.items()} == {
        "a new method": 2, "a new repair": 2, "a new distance": 1, "a new task": 2,
        "a new kind of task": 2, "a new kind of run": 2, "a new export format": 2,
        "a new option": 1, "a new view of the page": 4, "a new command": 0,
    }  # fmt: skip
    written = [(SOURCE / file).exists() for files in PARTS.values() for file in files]
    assert (written.count(False), written.count(True)) == (8, 10)


def test_a_method_is_one_file_and_one_line(add, cli, tmp_path):
    add("a new method")
    longest, model = METHODS["longest"], hc.load("pocket")
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


def test_a_repair_is_one_file_and_one_line(add, cli, tmp_path):
    add("a new repair")
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


def test_a_distance_is_one_function_and_one_line(add, cli):
    add("a new distance")
    ran = cli("redundancy", "pocket", "--random", 4, "--distances", "tops", "--json")
    assert ran.code == 0, ran.err
    assert "tops" in ran.out


def test_a_task_is_one_file_and_one_line(add, cli):
    add("a new task")
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


def test_a_kind_of_task_is_one_file_and_one_line(add, cli, tmp_path, monkeypatch):
    add("a new kind of task")
    (tmp_path / "headcount_which.py").write_text(WHICH, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
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


STUDY = """
runs:
  norms:
    kind: norms
    model: pocket
    grid: {options.power: [1.0, 2.0]}
"""


def test_a_kind_of_run_is_one_file_and_one_line(add, cli, tmp_path, monkeypatch):
    add("a new kind of run")
    monkeypatch.chdir(tmp_path)
    Path("norms.yaml").write_text(STUDY, encoding="utf-8")
    ran = cli("study", "run", "norms.yaml", "--json")
    assert ran.code == 0, ran.err
    records = [hc.load_record(folder) for folder in sorted(Path("norms/runs").iterdir())]
    one, two = sorted(records, key=lambda record: record.run.options.power)
    assert len(one.result.layers) == 6
    ran = cli("study", "table", "norms.yaml", "--json")
    assert ran.code == 0, ran.err
    assert f'"largest": {max(two.result.layers)}' in ran.out
    path = next(path for path in Path("norms/runs").iterdir() if two.run.key == path.name)
    ran = cli("run", path / "record.json", "--json", "--out", "again")
    assert ran.code == 0, ran.err
    assert tuple(json.loads(ran.out)["layers"]) == two.result.layers
    wrong = STUDY.replace("2.0", "-2.0")
    Path("norms.yaml").write_text(wrong, encoding="utf-8")
    ran = cli("study", "plan", "norms.yaml")
    assert ran.code == 2
    assert "The power of a norm is above 0, not -2.0" in ran.err
    assert "norms" in cli("ls", "runs").out


def test_an_export_format_is_one_file_and_one_line(add, cli, tmp_path):
    add("a new export format")
    out = tmp_path / "out"
    ran = cli("export", "pocket", "--to", "npz", "--out", out, "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["difference"] == 0
    card = (out / "README.md").read_text(encoding="utf-8")
    assert 'weights = np.load("path/to/this/folder/weights.npz")' in card
    with np.load(out / "weights.npz") as arrays:
        state = hc.load("pocket").state_dict()
        assert all(np.array_equal(arrays[name], value) for name, value in state.items())
    assert "npz" in cli("ls", "formats").out


def test_an_option_of_recovery_is_in_one_file(patched, tmp_path):
    (tmp_path / "texts.txt").write_text("the cat saw the dog\n" * 99, encoding="utf-8")
    pruned = ("--method", "random", "--ratio", 0.5, "--calibration", tmp_path / "texts.txt")
    repaired = ("--recover", "--damping", 1.0, "--out", tmp_path / "small", "--json")
    run = patched("a new option")
    ran = run("prune", "pocket", *pruned, *repaired)
    assert ran.code == 0, ran.err
    (step,) = json.loads(ran.out)["repair"]
    assert step["options"]["damping"] == 1.0
    assert all(fit["after"] == fit["before"] for fit in step["layers"])
    assert "--damping FLOAT" in run("search", "--help").out


def test_a_view_of_the_page_is_four_files(patched, tmp_path):
    study(tmp_path / "files", Layout.of(encoder=[2, 2]), ratios=(0.5,), seeds=1)
    page = tmp_path / "page.html"
    ran = patched("a new view of the page")("report", tmp_path / "files", "--out", page)
    assert ran.code == 0, ran.err
    text = page.read_text(encoding="utf-8")
    data = json.loads(re.findall(r'id="data">(.*?)</script>', text)[0])
    assert ["importance", "files", 1.0] in data["subjects"][0]["times"]
    assert '["times", "Times", () => times()]' in text
    assert text.index("const $times = (") < text.index("const { times } = $times;")


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
