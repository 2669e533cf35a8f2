"""Cuts of a study file that differ in their options are not taken for seeds of one."""

from __future__ import annotations

from pathlib import Path

from headcount.views.page.axes import axes_of, label_of
from headcount.views.page.cuts import cuts
from headcount.views.page.subjects import subjects
from headcount.views.page.walk import walk


def test_what_a_study_file_varies_is_in_the_name(study_file: Path) -> None:
    found = walk([study_file])
    (subject,) = subjects(found)
    names = {cut["method"] for cut in cuts(subject, found)}
    assert names == {"random, samples 64", "random, samples 256", "surgeon"}
    assert set(axes_of(subject.of("prune"), set()).values()) == set()


def test_a_repair_is_in_the_name() -> None:
    record = {"method": "surgeon", "repair": [{"name": "recover"}, {"name": "finetune"}]}
    assert label_of(record) == "surgeon, recovered, fine-tuned"
