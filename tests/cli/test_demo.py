from __future__ import annotations

from headcount.cli import demo
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
