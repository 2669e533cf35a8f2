from __future__ import annotations

import json
import sys

from headcount.cli import demo, main
from headcount.models.find import layout
from headcount.models.load import load


def test_the_demo_runs_to_its_end(cli, tmp_path, monkeypatch):
    quick = [
        step.replace("--preset pocket", "--preset pocket --steps 2").replace("--epochs 1", "")
        for step in demo.STEPS
    ]
    monkeypatch.setattr(
        demo, "STEPS", [step.replace("--random 200", "--random 8") for step in quick]
    )
    ran = cli("demo", "--out", tmp_path / "demo")
    assert ran.code == 0, ran.err
    assert "half by cluster" in ran.err
    assert f"The report is {tmp_path / 'demo' / 'report.md'}" in ran.err
    report = (tmp_path / "demo" / "report.md").read_text()
    assert "| half at random  | 24 " in report
    assert (tmp_path / "demo" / "heads.png").stat().st_size > 1000
    assert len(layout(load(tmp_path / "demo" / "small"))) == 24
    again = cli("demo", "--out", tmp_path / "demo")
    assert again.code == 2
    assert "new or empty folder" in again.err


def stub(monkeypatch, codes):
    """The demo's steps, not run: what they were, and the exit code that each is to leave with."""
    ran = []

    def step(words):
        ran.append(words)
        if words[0] == "prune":
            out = demo.Path(words[-1])
            out.mkdir(parents=True)
            score = {"score": 0.9, "low": 0.8, "high": 1.0}
            record = {
                "scores": {"metric": "accuracy", "before": score, "after": score},
                "parameters": {"before": 9, "after": 8},
                "heads": {"before": 4, "after": 2},
            }
            (out / "record.json").write_text(json.dumps(record))
        return codes.get(words[0], 0)

    monkeypatch.setattr(main, "main", step)
    return ran


def test_without_matplotlib_only_the_figure_is_missing(tmp_path, monkeypatch, capsys):
    ran = stub(monkeypatch, {})
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert demo.demo(out=tmp_path / "demo") == 0
    told = capsys.readouterr().err
    assert told.startswith("headcount: There will be no figures.")  # before any step
    assert "pip install 'headcount[report]'" in told
    assert not any("--figure" in words for words in ran)
    report = (tmp_path / "demo" / "report.md").read_text()
    assert "heads.png" not in report
    assert "Every step again" in report


def test_the_code_of_a_step_that_fails_is_the_demo_s(tmp_path, monkeypatch, capsys):
    ran = stub(monkeypatch, {"redundancy": 3})
    assert demo.demo(out=tmp_path / "demo") == 3
    assert [words[0] for words in ran] == ["inspect", "train", "redundancy"]
    assert "--figure" in ran[-1]
    assert "The demo stopped at: headcount redundancy" in capsys.readouterr().err
