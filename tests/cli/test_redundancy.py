from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headcount as hc
from headcount.likeness import inputs as inputs_room
from headcount.likeness import measure as measure_room
from headcount.tasks.vocabulary import train_tokenizer
from models.zoo import build

Cli = Callable[..., Any]
WORDS = ["the small king", "a queen", "the baker is near the queen", "a small baker"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("model")
    tokenizer = train_tokenizer(WORDS, 300)
    build("bert", vocab_size=len(tokenizer)).save_pretrained(made)
    tokenizer.save_pretrained(made)
    return made


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    file = tmp_path / "lines.txt"
    file.write_text("\n".join(["", *WORDS, ""]))
    return file


def test_random_tokens_by_default(cli: Cli, folder: Path, tmp_path: Path) -> None:
    out, png, svg = tmp_path / "r.npz", tmp_path / "r.png", tmp_path / "r.svg"
    line = ["redundancy", folder, "--calibration-samples", 8, "--max-length", 20]
    ran = cli(*line, "--out", out, "--figure", png, svg, "--json")
    assert ran.code == 0, ran.err
    assert ran.err == ""
    found = json.loads(ran.out)
    assert found["count"] == 8
    assert found["provenance"]["inputs"] == "random tokens"
    assert found["provenance"]["distances"] == ["js", "dcor"]
    assert [len(each["nearest"]) for each in found["summary"]] == [5, 5]
    value = hc.load_redundancy(out)
    upper = value["js"].values[np.triu_indices(16, 1)]
    assert found["summary"][0]["nearest"][0]["distance"] == upper.min()
    assert value.provenance["lengths"]["longest"] <= 20
    assert {path.name for path in tmp_path.iterdir()} == {
        "r.npz",
        "r.record.json",
        "r.png",
        "r.svg",
    }
    assert cli(*line, "--out", out).code == 0  # the same question
    other = cli(*line, "--out", out, "--seed", 1)
    assert other.code == 2
    assert "is not the result of the same run: pass --overwrite" in other.err
    assert hc.load_redundancy(out).provenance == value.provenance
    assert cli(*line, "--out", out, "--seed", 1, "--overwrite").code == 0
    table = cli(*line)
    assert "BertForSequenceClassification on 8 inputs (random tokens), seed 0" in table.out
    assert "most alike" in table.out


def test_texts_and_tasks(cli: Cli, folder: Path, lines: Path, tmp_path: Path) -> None:
    ran = cli("redundancy", folder, "--calibration", lines, "--distances", "js", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["count"] == 4, "blank lines are no inputs"
    assert found["provenance"]["inputs"] == "lines.txt"
    file = tmp_path / "dev.csv"
    file.write_text("words,kind\nthe small king,a\na queen,b\n")
    where = ["--data", file, "--columns", "words", "--label", "kind"]
    ran = cli("redundancy", folder, "--task", "classification", *where, "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["count"] == 1, "the other row of the file is kept for scoring"
    where += ["--split", "all"]
    plan = cli("redundancy", folder, "--task", "classification", *where, "--dry-run", "--json")
    assert json.loads(plan.out)["inputs"] == "2 (classification)"


def test_a_model_of_images_is_not_asked_for_a_tokenizer(cli: Cli, tmp_path: Path) -> None:
    build("vit").save_pretrained(tmp_path / "vit")
    rest = ["--task", "pocket-sentiment", "--ratio", 0.5, "--out", tmp_path / "out"]
    ran = cli("prune", tmp_path / "vit", *rest)
    assert ran.code == 5
    assert "reads images (pixel_values)" in ran.err
    assert "okenizer" not in ran.err
    ran = cli("redundancy", tmp_path / "vit", "--random", 3, "--distances", "js")
    assert ran.code == 0, ran.err
    (tmp_path / "pictures").mkdir()
    ran = cli("redundancy", tmp_path / "vit", "--calibration", tmp_path / "pictures")
    assert (ran.code, "no image" in ran.err.lower(), "okenizer" in ran.err) == (4, True, False), (
        ran.err
    )
    rest = ["--method", "cluster", "--ratio", 0.5, "--out", tmp_path / "small"]
    ran = cli("prune", tmp_path / "vit", *rest)
    assert ran.code == 0, ran.err


def test_interrupted_it_goes_on(
    cli: Cli, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs_room, "CHUNK", 40)
    whole, out = tmp_path / "whole.npz", tmp_path / "r.npz"
    line = ["redundancy", folder, "--random", 160, "--max-length", 12, "--distances", "cos"]
    assert cli(*line, "--out", whole).code == 0
    add = measure_room.RunningMoments.add
    calls = []

    def interrupt(self: Any, found: Any) -> None:
        calls.append(1)
        if len(calls) == 150:
            raise KeyboardInterrupt
        add(self, found)

    monkeypatch.setattr(measure_room.RunningMoments, "add", interrupt)
    ran = cli(*line, "--out", out)
    assert ran.code == 130
    assert "run the same command again to resume" in ran.err
    assert not out.exists()
    calls.clear()
    other = cli(*line, "--out", out, "--seed", 1)
    assert other.code == 2
    assert "has other settings: seed was 0, now 1; " in other.err
    assert cli(*line, "--out", out).code == 0
    assert len(calls) == 40, "the first 120 were kept"
    assert out.read_bytes() == whole.read_bytes()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"{name}.{end}" for name in ("r", "whole") for end in ("npz", "record.json")}


def test_killed_before_its_figure_it_gets_it_without_measuring_again(
    cli: Cli, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, figure = tmp_path / "r.npz", tmp_path / "r.svg"
    line = ["redundancy", folder, "--random", 40, "--max-length", 12, "--distances", "cos"]
    line += ["--out", out, "--figure", figure]

    def killed(found: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("headcount.views.redundancy.heat_maps", killed)
        assert cli(*line).code == 130
    assert not figure.exists()
    calls: list[int] = []
    monkeypatch.setattr(measure_room.RunningMoments, "add", lambda *_: calls.append(1))
    assert cli(*line).code == 0
    assert calls == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.npz", "r.record.json", "r.svg"]


def test_files_are_compared(cli: Cli, folder: Path, lines: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    cli("redundancy", folder, "--calibration", lines, "--distances", "js", "cos", "--out", one)
    cli("redundancy", folder, "--random", 6, "--distances", "js", "--out", other)
    line = ["redundancy", "compare", one, other, "--permutations", 19]
    ran = cli(*line, "--figure", tmp_path / "c.svg", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["files"] == ["one", "other"]
    assert [pair["other"] for pair in found["between_distances"]] == ["cos"]
    pair = found["between_files"][0]
    assert (pair["within"], pair["one"], pair["other"]) == ("js", "one", "other")
    assert {"pearson", "low", "high", "spearman", "normalised", "p_value", "mean_difference"} <= {
        *pair
    }
    assert len(found["where"]) == 3
    assert "one against other" in (tmp_path / "c.svg").read_text()
    table = cli(*line)
    for words in ("Between distances", "Between files", "Mantel p", "contiguous"):
        assert words in table.out


def test_bad_files_to_compare(cli: Cli, folder: Path, tmp_path: Path) -> None:
    wrong, one, small = tmp_path / "a.npz", tmp_path / "one.npz", tmp_path / "small.npz"
    wrong.write_text("no")
    ran = cli("redundancy", "compare", wrong)
    assert ran.code == 2
    assert "a.npz is no redundancy file" in ran.err
    assert cli("redundancy", "compare", tmp_path / "none.npz").code == 4
    cli("redundancy", folder, "--random", 3, "--out", one)
    assert cli("redundancy", "compare", one, one).code == 2
    value = hc.load_redundancy(one)
    other = hc.redundancy(build("bert", num_hidden_layers=3), {"input_ids": [[5, 6, 7]]}, "js")
    other.save(small)
    ran = cli("redundancy", "compare", one, small)
    assert ran.code == 2
    assert "'one' and 'small' are of different models" in ran.err
    assert value.layout != other.layout
    assert cli("redundancy", "compare", one, "--figure", "a.pdf").code == 2


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (["--distances", "jss"], 2, "There is no distance 'jss'. Did you mean 'js'?"),
        (["--task", "cola", "--random", "3"], 2, "one of --task, --calibration and --random"),
        (["--data", "x"], 2, "need --task"),
        (["--calibration", "nowhere.txt"], 4, "There is no file 'nowhere.txt'"),
        (["--random", "0"], 2, "The number of random rows is at least 1"),
        (["--calibration-samples", "0"], 2, "The number of inputs is at least 1"),
        (["--figure", "heads.jpg"], 2, "ends in .png or .svg"),
        (["--tolerance", "-1", "--random", "3"], 2, "above 0"),
        (["--task", "colla"], 2, "Did you mean 'cola'?"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_wrong_usage(change: list[str], code: int, message: str, cli: Cli, folder: Path) -> None:
    ran = cli("redundancy", folder, *change)
    assert ran.code == code, ran.err
    assert message in ran.err
    assert ran.out == ""


def test_empty_text(cli: Cli, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "blank.txt"
    file.write_text("\n \n")
    ran = cli("redundancy", folder, "--calibration", file)
    assert ran.code == 2
    assert "has no lines with text" in ran.err


def test_options_come_from_a_file_too(cli: Cli, folder: Path, tmp_path: Path) -> None:
    printed = cli("redundancy", folder, "--random", 3, "--distances", "js", "--print-config")
    assert printed.code == 0
    assert "[redundancy]" in printed.out
    file = tmp_path / "c.toml"
    file.write_text('[redundancy]\nrandom = 3\ndistances = ["cos"]\n')
    ran = cli("redundancy", folder, f"--config={file}", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["provenance"]["distances"] == ["cos"]


def test_neither_the_trainer_nor_the_methods_are_imported(folder: Path) -> None:
    script = (
        "import sys\n"
        "from headcount.cli.main import main\n"
        f"assert main(['redundancy', {str(folder)!r}, '--random', '4', '--json']) == 0\n"
        "heavy = {'transformers.trainer', 'headcount.learned.keeper', 'headcount.pruning.meta'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
