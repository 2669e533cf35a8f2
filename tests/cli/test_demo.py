from __future__ import annotations

from headcount.models.find import layout
from headcount.models.load import load


def test_the_demo_runs_to_its_end(cli, tmp_path):
    ran = cli("demo", "--out", tmp_path / "demo")
    assert ran.code == 0, ran.err
    assert ran.err.rstrip().endswith("README.md")
    assert layout(load(tmp_path / "demo" / "small"))["encoder"].heads == (7, 7, 7, 3, 2, 2)
    again = cli("demo", "--out", tmp_path / "demo")
    assert again.code == 2
    assert "new or empty folder" in again.err
