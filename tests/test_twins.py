"""A command and the function of the same name: one set of defaults, the same numbers and files."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headcount as hc
from headcount.cli.commands import COMMANDS
from headcount.cli.common import plain
from headcount.costs.speed import plan
from headcount.runs.record import COMMON
from headcount.tasks import open_task
from headcount.tasks.generated import SIZES
from headcount.tasks.loading import load_for_task, load_tokenizer
from page.made import study

Cli = Callable[..., Any]
EXEMPT = {  # they are about the installation, not about a model
    "demo": "runs other commands, and shows what they print",
    "doctor": "looks at the machine",
    "ls": "lists the registries",
}
TWINS = [entry.name for entry in COMMANDS if entry.name not in EXEMPT]
TEXTS = ["the lawyer sees the judge .", "the dog", "a judge hears the old lawyer ."]
KEEP = "877432"


def ran(cli: Cli, *tokens: object) -> dict[str, Any]:
    done = cli(*tokens, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def result(told: dict[str, Any]) -> dict[str, Any]:
    """What came out, of a record or of a value: not who computed it, and when."""
    return {name: value for name, value in told.items() if name not in COMMON}


def without(data: Any, *names: str) -> Any:
    """The same without what differs from run to run."""
    if isinstance(data, list):
        return [without(each, *names) for each in data]
    if isinstance(data, dict):
        return {key: without(each, *names) for key, each in data.items() if key not in names}
    return data


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module", autouse=True)
def few_rows() -> Generator[None]:
    """The made tasks are smaller here, for both: what is asked is whether they agree."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SIZES, "train", 400)
        patch.setitem(SIZES, "dev", 100)
        yield


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


def test_the_exempt_are_commands() -> None:
    assert set(EXEMPT) < {entry.name for entry in COMMANDS}


@pytest.mark.parametrize("name", TWINS)
def test_a_command_has_its_function_with_a_signature(name: str) -> None:
    function = getattr(hc, name)
    assert inspect.isfunction(function)
    assert inspect.getdoc(function)
    parameters = inspect.signature(function).parameters.values()
    named = [
        each for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    assert named, f"hc.{name} has no parameters of its own"
    assert all(each.annotation is not each.empty for each in parameters)


@pytest.mark.parametrize(
    "name",
    ["inspect", "bench", "redundancy", "roles", "importance", "transfer", "attention", "remove",
     "export", "evaluate", "report"],
)  # fmt: skip
def test_what_both_are_asked_has_one_default(name: str) -> None:
    command: Any = COMMANDS[name]
    parameters = inspect.signature(getattr(command, "default_command", command)).parameters
    typed: dict[str, Any] = {}
    for each in parameters.values():  # a group of options stands for its fields
        grouped = hasattr(each.default, "on")
        typed |= vars(each.default.on()) if grouped else {each.name: each.default}
    function = inspect.signature(getattr(hc, name)).parameters
    chosen = {each for each, about in function.items() if about.default is not about.empty}
    shared = [each for each in typed if each in chosen]
    assert {each: typed[each] for each in shared} == {
        each: function[each].default for each in shared
    }
    assert not [each for each in function.values() if each.kind in (each.VAR_KEYWORD,)]


def test_inspect(cli: Cli) -> None:
    assert ran(cli, "inspect", "pocket") == plain(hc.inspect("pocket").to_json())
    short = hc.inspect("pocket", length=9)
    assert ran(cli, "inspect", "pocket", "--length", 9) == plain(short.to_json())


def test_bench_plan(cli: Cli) -> None:
    told = ran(cli, "bench", "pocket", "--ratio", 0.5, 0.9, "--length", 16, "--dry-run")
    assert told == plain(plan("pocket", ratio=[0.5, 0.9], length=16).to_json())


def test_bench(cli: Cli) -> None:
    sizes = {"batch": 1, "length": 4, "repeats": 6, "ratio": 0.5, "device": "cpu", "seed": 3}
    options = [token for name, value in sizes.items() for token in (f"--{name}", value)]
    options += ["--timing-seconds", 0]
    told = ran(cli, "bench", "pocket", *options, "--no-onnx")
    times = ("ratio", "seconds", "over_ideal", "speedup", "precise")
    found = hc.bench("pocket", onnx=False, timing_seconds=0, **sizes)  # pyright: ignore[reportArgumentType]
    assert without(result(told), *times) == without(plain(result(found.to_json())), *times)


def test_importance(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "importance.json"
    asked = (
        "--task",
        "pocket-corpus",
        "--calibration-samples",
        8,
        "--normalize",
        "l1",
        "--out",
        out,
    )
    told = ran(cli, "importance", "pocket", *asked)
    model = load_for_task("pocket", open_task("pocket-corpus"), new_head=False)
    found = hc.importance(
        model, "pocket-corpus", samples=8, normalize="l1", tokenizer=load_tokenizer("pocket")
    )
    assert told["predicts"] == found.to_json()["kind"]
    drop = ("model", "task", "seed", "predicts")
    assert without(result(told), *drop) == without(plain(result(found.to_json())), *drop)
    assert json.loads(out.read_text(encoding="utf-8")) == told


def test_redundancy(cli: Cli, texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.npz"
    told = ran(
        cli, "redundancy", "pocket", "--calibration", texts, "--distances", "js", "--out", out
    )
    found = hc.redundancy(
        hc.load("pocket"), TEXTS, "js", tokenizer=load_tokenizer("pocket"), samples=1000,
        name=texts.name,
    )  # fmt: skip
    saved = hc.load_redundancy(out)
    assert np.array_equal(saved["js"].values, found["js"].values)
    assert np.array_equal(saved["js"].stderr, found["js"].stderr)
    assert (saved.layout, saved.count) == (found.layout, found.count)
    assert plain(saved.provenance) == plain(found.provenance)
    assert told["count"] == found.count


def test_roles(cli: Cli, texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "roles.json"
    told = ran(cli, "roles", "pocket", "--calibration", texts, "--out", out)
    found = hc.roles(
        hc.load("pocket"), TEXTS, tokenizer=load_tokenizer("pocket"), samples=1000, name=texts.name
    )
    drop = ("out", "figures")
    assert without(result(told), *drop) == plain(found.to_json())
    assert hc.load_roles(out).to_json() == found.to_json()
    bare = ran(cli, "roles", "pocket", "--calibration-samples", 4, "--max-length", 12)
    again = hc.roles(
        hc.load("pocket"), tokenizer=load_tokenizer("pocket"), samples=4, max_length=12
    )
    assert without(result(bare), *drop) == plain(again.to_json())


def test_evaluate(cli: Cli) -> None:
    asked = ("--task", "pocket-corpus", "--limit", 8, "--bootstrap", 20, "--mask", KEEP)
    told = ran(cli, "evaluate", "pocket", *asked)
    model = load_for_task("pocket", open_task("pocket-corpus"), new_head=False)
    layout = hc.layout(model)
    masks = [hc.Mask.full(layout), hc.Mask.parse(KEEP, layout)]
    full, cut = hc.evaluate(
        model, "pocket-corpus", masks, scoring=hc.Scoring(limit=8, bootstrap=20),
        tokenizer=load_tokenizer("pocket"),
    )  # fmt: skip
    lost = hc.difference(full, cut, bootstrap=20)
    drop = ("seconds", "model", "masks")
    assert without(result(told), *drop) == without(plain(result(full.to_json())), *drop)
    (masked,) = told["masks"]
    assert masked["differences"][lost.metric] == plain(lost.to_json())
    assert without(masked, "seconds", "differences") == without(plain(cut.to_json()), "seconds")


def test_report(cli: Cli, tmp_path: Path) -> None:
    study(tmp_path / "files", hc.Layout.of(encoder=[2, 2]), ratios=(0.5,), seeds=1)
    told = ran(cli, "report", tmp_path / "files", "--out", tmp_path / "shell.html")
    found = hc.report(tmp_path / "files", out=tmp_path / "python.html").to_json()
    assert without(told, "out") == without(found, "out")
    assert Path(told["out"]).read_bytes() == Path(found["out"]).read_bytes()


def test_remove_and_export(cli: Cli, tmp_path: Path) -> None:
    typed, called = tmp_path / "typed" / "small", tmp_path / "called" / "small"
    told = ran(cli, "remove", "pocket", "--keep", KEEP, "--out", typed)
    model = hc.load("pocket")
    mask = hc.Mask.parse(KEEP, hc.layout(model))
    small = hc.remove(model, mask)
    small.save_pretrained(called)
    assert files(typed) == files(called)
    assert told["mask"] == plain(mask.to_json())
    assert told["parameters"]["after"] == small.num_parameters()
    told = ran(cli, "export", typed, "--to", "zeroed", "--out", tmp_path / "typed" / "zeroed")
    done = hc.export(hc.load(typed), "zeroed", tmp_path / "called" / "zeroed")
    assert files(tmp_path / "typed" / "zeroed") == files(tmp_path / "called" / "zeroed")
    assert (told["to"], told["files"], told["bytes"]) == (done.to, list(done.files), done.bytes)
    assert told["difference"] == done.difference


def test_transfer_and_attention(cli: Cli, texts: Path, tmp_path: Path) -> None:
    first, second = hc.load("pocket"), hc.load("pocket")
    with torch.no_grad():
        for place, weight in enumerate(second.parameters()):
            weight.mul_(1 + 0.01 * (place % 5))
    second.save_pretrained(tmp_path / "tuned")
    words = load_tokenizer("pocket")
    words.save_pretrained(tmp_path / "tuned")
    told = ran(cli, "transfer", "pocket", tmp_path / "tuned", "--calibration", texts)
    found = hc.transfer(first, second, TEXTS, tokenizer=words, samples=1000)
    drop = ("pretrained", "finetuned", "inputs")
    assert without(result(told), *drop) == without(plain(found.to_json()), *drop)
    told = ran(cli, "attention", "pocket", "--text", TEXTS[0])
    maps = hc.attention(first, TEXTS[0], tokenizer=words)
    drop = ("model", "pruned", "command")
    assert without(told, *drop) == without(plain(maps.to_json()), *drop)


TASK = "pocket-acceptability"
FEW = ("--limit", 20, "--bootstrap", 5)
SHORT = hc.TrainOptions(steps=2, batch_size=8)
STEPS = ("--steps", 2, "--batch-size", 8)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with a head for the task."""
    folder = tmp_path_factory.mktemp("tuned") / "run"
    model = load_for_task("pocket", open_task(TASK))
    hc.train(model, TASK, options=SHORT, out=folder, tokenizer=load_tokenizer("pocket"))
    return folder


def test_train(cli: Cli, tuned: Path, tmp_path: Path) -> None:
    told = ran(cli, "train", "pocket", "--task", TASK, *STEPS, "--out", tmp_path / "run")
    assert told["evaluation"]["score"] == hc.evaluate(hc.load(tuned), TASK).score
    left, right = (files(folder) for folder in (tmp_path / "run", tuned))
    assert left["model.safetensors"] == right["model.safetensors"]
    assert left["curve.jsonl"] == right["curve.jsonl"]


def test_prune_and_run(cli: Cli, tuned: Path, tmp_path: Path) -> None:
    typed, called, again = (tmp_path / name / "small" for name in ("typed", "called", "again"))
    asked = ("--method", "importance", "--step", 0.25, "--ratio", 0.5, "--recover")
    asked += ("--calibration-samples", 16, "--seed", 2, "--baseline", 1)
    told = ran(cli, "prune", tuned, "--task", TASK, *asked, *FEW, "--out", typed)
    found = hc.prune(
        str(tuned), hc.Importance(step=0.25), 0.5, task=TASK, seed=2, baseline=1, out=called,
        repair=(hc.Recover(),), calibration=hc.Calibration(samples=16),
        scoring=hc.Scoring(limit=20, bootstrap=5, seed=2),
    )  # fmt: skip
    drop = ("seconds", "command", "out")
    assert without(told, *drop) == without(plain(found.record.to_json()), *drop)
    left, right = files(typed), files(called)
    changed = {"record.json", "README.md"}  # they name the command and the seconds
    assert {n: left[n] for n in left if n not in changed} == {
        n: right[n] for n in right if n not in changed
    }
    rerun = ran(cli, "run", typed, "--out", again)
    assert without(rerun, *drop) == without(told, *drop)
    assert files(again)["model.safetensors"] == left["model.safetensors"]
    record = hc.run(hc.load_record(typed).run)
    assert record.id == told["id"]


def test_search(cli: Cli, tuned: Path, tmp_path: Path) -> None:
    typed, called = tmp_path / "typed", tmp_path / "called"
    asked = (
        "--max-drop",
        "1.5",
        "--calibration-samples",
        16,
        "--seeds",
        1,
        "--baseline",
        1,
        "--no-bench",
    )
    told = ran(cli, "search", tuned, "--task", TASK, *asked, *FEW, "--out", typed)
    found = hc.search(
        str(tuned),
        TASK,
        max_drop="1.5",
        baseline=1,
        out=called,
        calibration=hc.Calibration(samples=16),
        scoring=hc.Scoring(limit=20, bootstrap=5),
        search_options=hc.SearchOptions(seeds=1, bench=False),
    )
    drop = ("seconds", "out", "command", "sum")
    assert without(told, *drop) == without(plain(found.to_json()), *drop)
    left, right = files(typed / "model"), files(called / "model")
    assert left["model.safetensors"] == right["model.safetensors"]
    assert left["mask.json"] == right["mask.json"]


def test_study(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "probes.json"
    each = {"kind": "probe", "model": "none", "seeds": 2, "grid": {"options.say": ["a", "b"]}}
    file.write_text(json.dumps({"runs": {"each": each}}), encoding="utf-8")
    typed, called = tmp_path / "typed", tmp_path / "called"
    status = ran(cli, "study", "run", file, "--out", typed)
    table = ran(cli, "study", "table", file, "--out", typed)
    found = hc.study(file, called)
    found.run()
    drop = ("seconds", "folder", "files")
    assert without(status, *drop) == without(plain(found.status().to_json()), *drop)
    assert without(table, *drop) == without(plain(found.table().to_json()), *drop)


@pytest.mark.parametrize("name", ["curve", "compare", "sweep"])
def test_studies(cli: Cli, tuned: Path, tmp_path: Path, name: str) -> None:
    typed, called = tmp_path / "typed", tmp_path / "called"
    few: Any = {"seeds": 1, "scoring": hc.Scoring(limit=20, bootstrap=5), "out": called}
    if name == "curve":
        asked: Any = ("--methods", "random", "--ratios", 0.5)
        found: Any = hc.curve(str(tuned), TASK, ["random"], [0.5], **few)
    elif name == "compare":
        asked = ("--methods", "random,all-heads", *STEPS)
        found = hc.compare(str(tuned), TASK, ["random", "all-heads"], train=SHORT, **few)
    else:
        asked = ("--over", "mu=0.1,0.2", *STEPS)
        found = hc.sweep(str(tuned), TASK, "mu", [0.1, 0.2], train=SHORT, **few)
    told = ran(cli, name, tuned, "--task", TASK, *asked, "--seeds", 1, *FEW, "--out", typed)
    drop = ("seconds", "out", "command", "sum")
    assert without(told, *drop) == without(plain(found.to_json()), *drop)
    records = [{path.parent.name for path in each.rglob("record.json")} for each in (typed, called)]
    assert records[0] == records[1]
    assert len(records[0]) == len(found.points)
