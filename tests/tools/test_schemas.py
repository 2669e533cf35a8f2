"""The page and the schemas are made from the types, and real files are what they say."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from headcount.runs.kinds import KINDS
from headcount.studies.written import read_written
from runs.test_results import packed_records
from runs.whole import whole_record
from tools.schemas import ROOT, contents, record_schema, study_schema

RECORD, STUDY = record_schema(), study_schema()
KIND_NAMES = [kind.name for kind in KINDS]
STUDIES = [
    *(ROOT / "studies").glob("*.yaml"),
    *(ROOT / "src/headcount/studies/shipped").glob("*.yaml"),
    *(ROOT / "src/headcount/papers/data/scales").glob("*.yaml"),
]
COMMON = {
    "format": "headcount", "version": 1, "id": "0a", "run": {}, "identity": {}, "versions": {},
    "device": "cpu", "command": None, "seconds": 1.5, "notes": [],
    "rows": {"evaluation": {"split": "dev", "n": 9, "seed": None, "fingerprint": None}},
}  # fmt: skip


def mistakes(schema: dict[str, Any], data: object) -> list[str]:
    """What is wrong with some data."""
    return [error.message for error in Draft202012Validator(schema).iter_errors(data)]


@pytest.mark.parametrize("path", contents(), ids=lambda path: path.name)
def test_the_files_on_disk_are_what_the_types_say(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == contents()[path], "run: python -m tools.schemas"


@pytest.mark.parametrize("schema", [RECORD, STUDY], ids=["record", "study"])
def test_it_is_a_schema(schema: dict[str, Any]) -> None:
    assert mistakes(Draft202012Validator.META_SCHEMA, schema) == []


def test_every_kind_and_key_is_on_the_page() -> None:
    page = contents()[ROOT / "docs" / "records.md"]
    for kind in KIND_NAMES:
        assert f"\n## {kind}\n" in page
    assert "| `beaten` | boolean or null, may be left out |" in page
    assert "||" not in page.replace("\\|", "")
    assert not [
        line for line in page.splitlines() if line.startswith("|") and line.endswith("|  |")
    ]


def test_records_of_real_runs_are_valid() -> None:
    records = packed_records()
    validator = Draft202012Validator(RECORD)
    chosen = {(one["kind"], "scores" in one, "learned" in one): one for one in records}
    assert len(chosen) >= 8
    for record in chosen.values():
        assert [error.message for error in validator.iter_errors(record)] == []


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_a_whole_record_of_every_kind_is_valid(kind: str) -> None:
    assert mistakes(RECORD, whole_record(kind, {"kind": kind, **COMMON})) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "prun"}, "'prun' is not one of"),
        ({"version": 2}, "1 was expected"),
        ({"ratio": "most"}, "'most' is not valid"),
        ({"heads": {"before": 3, "after": 2}}, "'kept' is a required property"),
        ({"rows": {"evaluation": {"split": 3}}}, "3 is not of type 'string'"),
        ({"mask": {"layout": {}}}, "'kept' is a required property"),
        ({"repair": [{"name": "recover"}]}, "'options' is a required property"),
        ({"notes": "none"}, "'none' is not of type 'array'"),
    ],
    ids=str,
)
def test_a_wrong_record_is_refused(change: dict[str, Any], message: str) -> None:
    whole = whole_record("prune", {"kind": "prune", **COMMON})
    assert any(message in text for text in mistakes(RECORD, whole | change))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_study_files_of_the_repository_are_valid(path: Path) -> None:
    assert mistakes(STUDY, read_written(path).data) == []


GROUP = {"kind": "prune", "model": "pocket", "task": "pocket-sentiment", "methods": ["random"],
         "ratios": [0.5], "seeds": 3, "options": {"baseline": 0, "gated": True}}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"knd": "prune"}, "'knd' was unexpected"),
        ({"kind": "cut"}, "'cut' is not one of"),
        ({"options": {"baselin": 0}}, "'baselin' was unexpected"),
        ({"options": {"baseline": "none"}}, "'none' is not of type 'integer'"),
        ({"options": {"method": {"name": "importance", "norm": "l1"}}}, "is not valid under any"),
        ({"options": {"scoring": {"limit": "50"}}}, "'50' is not"),
        ({"keep": "all"}, "'all' is not one of"),
        ({"seconds": 0}, "0 is less than or equal to the minimum of 0"),
    ],
    ids=str,
)
def test_a_wrong_study_file_is_refused(change: dict[str, Any], message: str) -> None:
    study: dict[str, Any] = {"name": "a", "runs": {"cut": GROUP}}
    assert mistakes(STUDY, study) == []
    wrong = copy.deepcopy(study)
    wrong["runs"]["cut"] |= change
    assert any(message in text for text in mistakes(STUDY, wrong)), mistakes(STUDY, wrong)
    assert mistakes(STUDY, {"name": "a"}) == ["'runs' is a required property"]
