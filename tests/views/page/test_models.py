"""Models are called by their own names, or by what the runs of a study made of them."""

from __future__ import annotations

from pathlib import Path

from headcount.views.page.models import base_of, labels, model_name
from headcount.views.page.reading import parts_of
from headcount.views.page.walk import ReportInput, walk


def test_a_run_is_called_by_what_it_was_made_of(study_file: Path) -> None:
    report = walk([study_file])
    path = study_file / "runs" / "training1"
    assert model_name(str(path), report) == "base, trained, seed 1"
    assert model_name(str(path), report, seed=False) == "base, trained"
    assert model_name("somewhere/training1", report) == "training1"
    twice = {"kind": "prune", "model": {"kind": "train", "model": "hub/a"}, "seed": 2}
    assert model_name(twice, report) == "a, trained, pruned, seed 2"


def test_seeds_do_not_make_another_model() -> None:
    run = {"kind": "train", "model": "a", "seed": 1, "options": {"training": {"seed": 1, "x": 2}}}
    again = {"kind": "train", "model": "a", "seed": 3, "options": {"training": {"seed": 3, "x": 2}}}
    other = {"kind": "train", "model": "a", "seed": 1, "options": {"training": {"seed": 1, "x": 9}}}
    assert base_of({"model": run}) == base_of({"model": again}) != base_of({"model": other})
    assert base_of({"model": "a"}) is None


def test_labels_are_all_different_and_know_their_phase(report: ReportInput) -> None:
    names = labels(["/x/model", "/y/model", "model", "before"], report)
    assert names == {
        "/x/model": "x/model", "/y/model": "y/model", "model": "model (fine-tuned)",
        "before": "before (pre-trained)",
    }  # fmt: skip
    assert parts_of("./a//b/") == ["a", "b"]
