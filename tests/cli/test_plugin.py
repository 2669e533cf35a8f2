"""`--plugin FILE`: a method of one's own from the command line, here and in workers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headcount as hc
from headcount.base import plugins
from headcount.pruning.methods import METHODS

DESIGN = (Path(__file__).parents[2] / "docs" / "design.md").read_text(encoding="utf-8")
METHOD = DESIGN.partition('pruning/longest.py"\n')[2].partition("```")[0]
LINE = '\nfrom headcount.pruning.methods import METHODS\nMETHODS.add("longest", Longest, "Long.")\n'


@pytest.fixture
def script(registered, monkeypatch, tmp_path) -> Path:
    """The method of docs/design.md in a script that adds it."""
    monkeypatch.setattr(plugins, "_scripts", {})
    path = tmp_path / "longest.py"
    path.write_text(METHOD + LINE, encoding="utf-8")
    return path


def test_a_method_of_a_script_is_pruned_with_and_run_again(script, cli, tmp_path):
    asked = ("--method", "longest", "--ratio", 0.5, "--power", 1)
    ran = cli("prune", "pocket", "--plugin", script, *asked, "--out", tmp_path / "small", "--json")
    assert ran.code == 0, ran.err
    record = json.loads(ran.out)
    assert record["options"] == {"power": 1.0}
    assert record["command"].endswith(f"--json --plugin {script}")
    assert (
        "--power FLOAT" in cli("prune", f"--plugin={script}", "--method", "longest", "--help").out
    )
    ran = cli("run", tmp_path / "small", "--out", tmp_path / "again", "--json")
    assert json.loads(ran.out)["mask"] == record["mask"]
    code = record["identity"]["method.longest.code"]
    script.write_text(script.read_text() + "# edited\n")
    again = cli("prune", "pocket", "--plugin", script, *asked, "--out", tmp_path / "small")
    assert again.code == 2
    assert code in again.err
    METHODS._entries.pop("longest")
    ran = cli("run", tmp_path / "small")
    assert ran.code == 2
    assert "There is no method 'longest'" in ran.err
    assert "One of a script needs --plugin FILE" in ran.err


def test_what_is_wrong_with_a_plugin_is_told_before_anything_else(cli, tmp_path):
    (tmp_path / "broken.py").write_text("METHODS.add()", encoding="utf-8")
    ran = cli("ls", "--plugin", tmp_path / "broken.py")
    assert (ran.code, ran.out) == (2, "")
    assert "broken.py cannot be used: NameError: name 'METHODS' is not defined" in ran.err
    assert cli("ls", "--plugin", tmp_path / "none.py").code == 4
    assert "--plugin needs a file" in cli("ls", "--plugin").err


STUDY = """
runs:
  cut:
    kind: prune
    model: pocket
    options: {method: {name: longest, power: 1}, ratio: 0.5}
    seeds: 2
"""


def test_the_workers_of_a_study_execute_it_as_well(script, cli, tmp_path):
    file = tmp_path / "study.yaml"
    file.write_text(STUDY, encoding="utf-8")
    how = ("--plugin", script, "--executor", "processes", "--workers", 1, "--json")
    ran = cli("study", "run", file, "--out", tmp_path / "out", *how)
    assert ran.code == 0, ran.err
    records = sorted((tmp_path / "out" / "runs").glob("*/record.json"))
    assert len(records) == 2
    mask = hc.select(hc.load("pocket"), "longest", 0.5, power=1.0)
    assert json.loads(records[0].read_text())["heads"]["kept"] == mask.pattern


def test_a_broken_package_breaks_no_command(cli, tmp_path, monkeypatch, registered):
    about = tmp_path / "headcount_extra-0.3.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: headcount-extra\nVersion: 0.3\n")
    (about / "entry_points.txt").write_text("[headcount.methods]\nmelt = not_there_at_all:Melt\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(METHODS, "_packages", None)
    listed = cli("ls", "methods")
    assert (listed.code, listed.err) == (0, "")  # its metadata are enough
    assert "headcount-extra 0.3" in listed.out
    ran = cli("prune", "pocket", "--method", "random", "--ratio", 0.5, "--out", tmp_path / "small")
    assert ran.code == 0
    assert ran.err.count("'melt' of the package headcount-extra 0.3 cannot be loaded") == 1
    ran = cli("prune", "pocket", "--method", "melt", "--ratio", 0.5, "--out", tmp_path / "b")
    assert ran.code == 2
    assert "headcount: The method 'melt' of the package headcount-extra 0.3 cannot be" in ran.err
