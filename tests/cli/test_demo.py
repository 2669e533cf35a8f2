from __future__ import annotations

import json
from dataclasses import replace

from headcount.cli import demo, main
from headcount.models.find import layout
from headcount.models.load import load
from headcount.studies.search.answer_card import answer_card
from headcount.tasks.generated import SIZES

QUICK = {
    "train": "--steps 2", "search": "--limit 60 --bootstrap 20",
    "curve": "--limit 20 --bootstrap 5", "redundancy": "", "importance": "",
    "roles": "", "attention": "", "transfer": "", "prune": "--bootstrap 5",
    "bench": "--repeats 6 --timing-seconds 0", "report": "",
}  # fmt: skip
FEWER = {
    "--calibration-samples 200": "--calibration-samples 8",
    "--calibration-samples 300": "--calibration-samples 8",
    "--calibration-samples 256": "--calibration-samples 16",
    "--calibration-samples 150": "--calibration-samples 8",
    "--importance-samples 128": "--importance-samples 8",
    "--limit 200": "--limit 8",
    "--limit 500": "--limit 20",
    "--steps 80": "--steps 2",
    "--max-drop 2%": "--max-drop 90%",
    "--seeds 2": "--seeds 1",
    " --alone --limit 8": "",
}


def quick(step):
    """A step of the demo on a few rows."""
    name = step.command.split()[0]
    command = step.command
    for usual, few in FEWER.items():
        command = command.replace(usual, few)
    return replace(step, command=f"{command} {QUICK[name]}")


def test_the_demo_tells_its_story_to_the_end(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "STORY", [quick(step) for step in demo.STORY])
    monkeypatch.setitem(SIZES, "dev", 150)
    out = tmp_path / "demo"
    ran = cli("demo", "--out", out)
    assert ran.code == 0, ran.err
    answer = json.loads((out / "search" / "search.json").read_text())
    assert answer["command"].startswith(
        f"headcount search {out}/pocket --task pocket-acceptability"
    )
    story = " ".join(ran.out.split())
    assert answer["sentence"] in story
    title, *card = answer_card(answer).lines()
    assert f"\n\n{title}\n{card[0]}\n" in ran.out
    assert f"The page is {out / 'report.html'}" in ran.out
    assert max(map(len, ran.out.splitlines())) < 400
    assert answer["sentence"].split(":")[0] in (out / "report.html").read_text(encoding="utf-8")
    assert [line.strip() for line in ran.out.splitlines()[-3:]] == list(demo.NEXT)
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
