from __future__ import annotations

import json
from dataclasses import replace

from headcount.cli import demo, main
from headcount.models.find import layout
from headcount.models.load import load

QUICK = {
    "train": "--steps 2", "search": "--limit 60 --draws 20 --samples 16 --seeds 1",
    "curve": "--limit 20 --draws 5 --samples 16", "redundancy": "", "importance": "",
    "roles": "", "bench": "--repeats 6", "report": "",
}  # fmt: skip


def quick(step):
    """A step of the demo on a few rows."""
    name = step.command.split()[0]
    command = step.command.replace("--samples 200", "--samples 8")
    command = command.replace("--samples 300", "--samples 8").replace("--limit 200", "--limit 8")
    command = command.replace("--max-drop 1%", "--max-drop 90%").replace(" --alone --limit 8", "")
    return replace(step, command=f"{command} {QUICK[name]}")


def test_the_demo_tells_its_story_to_the_end(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "STORY", [quick(step) for step in demo.STORY])
    out = tmp_path / "demo"
    ran = cli("demo", "--out", out)
    assert ran.code == 0, ran.err
    assert ran.out == ""
    answer = json.loads((out / "search" / "search.json").read_text())
    assert ran.err.count(answer["sentence"]) == 2
    assert f"The page is {out / 'report.html'}" in ran.err
    assert answer["sentence"].split(":")[0] in (out / "report.html").read_text(encoding="utf-8")
    assert ran.err.rstrip().splitlines()[-1].strip() == demo.NEXT[-1]
    assert len(layout(load(out / "search" / "model"))) == answer["kept"]
    again = cli("demo", "--out", out)
    assert again.code == 2
    assert "new or empty folder" in again.err


def test_a_step_that_fails_ends_the_demo_with_its_code(tmp_path, monkeypatch, capsys):
    ran = []

    def step(words):
        ran.append(words[0])
        return 4

    monkeypatch.setattr(main, "main", step)
    assert demo.demo(out=tmp_path / "demo") == 4
    assert ran == ["train"]
    assert "The demo stopped at: headcount train pocket" in capsys.readouterr().err
