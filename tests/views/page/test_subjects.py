"""What is about one model on one task is put together, and kept apart from others."""

from __future__ import annotations

import json
from pathlib import Path

from headcount.heads import Layout
from headcount.views.page.quantities import quantities
from headcount.views.page.reading import parts_of
from headcount.views.page.subjects import PageSubject, base_of, labels, model_name, subjects
from headcount.views.page.walk import ReportInput, walk
from page.made import record, roles, study, write

LAYOUT = Layout.of(encoder=[2, 2])


def test_one_of_everything_is_one_subject(subject: PageSubject) -> None:
    assert (subject.name, len(subject.layout)) == ("model on task", 12)
    assert {item.kind for item in subject.items} >= {
        "prune", "importance", "study", "search", "roles", "matrix", "trace", "bench", "transfer",
        "attention",
    }  # fmt: skip


def test_models_and_tasks_are_kept_apart(tmp_path: Path) -> None:
    for model, task in (("a", "x"), ("a", "y"), ("b", "x")):
        study(tmp_path / f"{model}{task}", LAYOUT, model=model, task=task, ratios=(0.5,), seeds=1)
    listed = subjects(walk([tmp_path]))
    assert sorted(each.name for each in listed) == ["a on x", "a on y", "b on x"]
    for each in listed:
        assert {item.data["model"] for item in each.of("prune")} == {each.model}
        assert len(each.of("search")) == 1
        assert len(each.of("matrix")) == 9  # of every model with this layout


def test_a_matrix_alone_is_a_subject_without_a_task(tmp_path: Path) -> None:
    study(tmp_path, LAYOUT)
    for path in tmp_path.rglob("*.json"):
        path.unlink()
    (only,) = subjects(walk([tmp_path]))
    assert (only.name, only.task) == ("before", None)


def test_a_training_is_of_the_folder_it_made(tmp_path: Path) -> None:
    study(tmp_path, LAYOUT, ratios=(0.5,), seeds=1)
    scored = {"metric": "accuracy", "score": 0.9, "low": 0.8, "high": 1.0, "n": 10}
    write(tmp_path / "model" / "record.json", record("train", "before", "task", evaluation=scored))
    write(tmp_path / "other" / "record.json", record("train", "before", "task", evaluation=scored))
    (only,) = subjects(walk([tmp_path]))
    assert [item.folder.name for item in only.of("train")] == ["model"]


def test_seeds_of_one_training_are_one_model(study_file: Path) -> None:
    report = walk([study_file])
    (only,) = subjects(report)
    assert only.name == "base, trained on task"
    assert {item.data["seed"] for item in only.of("prune")} == {0, 1, 2}
    assert len(only.of("train")) == 3


def test_what_has_no_task_is_about_the_model_on_every_task(tmp_path: Path) -> None:
    for task in ("x", "y"):
        study(tmp_path / task, LAYOUT, model="a", task=task, ratios=(0.5,), seeds=1)
    write(tmp_path / "looks.json", roles(LAYOUT, "a", "x") | {"task": None, "run": {}} | {
        "identity": {"weights": "weights of a", "task": None}})  # fmt: skip
    write(tmp_path / "other.json", roles(LAYOUT, "b", "x") | {"task": None, "run": {}} | {
        "identity": {"weights": "weights of b", "task": None}})  # fmt: skip
    named = {each.name: each for each in subjects(walk([tmp_path]))}
    assert sorted(named) == ["a on x", "a on y", "b"]
    for name in ("a on x", "a on y"):
        assert "looks.json" in [item.path.name for item in named[name].of("roles")]
    assert [item.path.name for item in named["b"].of("roles")] == ["other.json"]


def test_what_a_search_measured_for_the_page_gives_way_to_commands(tmp_path: Path) -> None:
    study(tmp_path, LAYOUT, ratios=(0.5,), seeds=1)
    (found,) = tmp_path.rglob("search.json")
    for name in ("one", "other"):
        write(tmp_path / name / "search.json", json.loads(found.read_text()))
        write(tmp_path / name / "details" / "roles.json", roles(LAYOUT, "model", "task"))
    (only,) = subjects(walk([tmp_path]))
    assert [item.path for item in only.of("roles")] == [tmp_path / "roles.json"]
    (tmp_path / "roles.json").unlink()
    report = walk([tmp_path])
    (only,) = subjects(report)
    assert [item.search for item in only.of("roles")] == [tmp_path / "one", tmp_path / "other"]
    named = {each.label for each in quantities(only, report, []) if each.label[:4] == "next"}
    assert named == {"next token · one", "next token · other"}


def test_a_bench_of_several_shapes_is_of_its_model(tmp_path: Path) -> None:
    study(tmp_path, LAYOUT, ratios=(0.5,), seeds=1)
    bench = json.loads((tmp_path / "bench.json").read_text())
    bench["timings"] = [row | {"batch": batch} for batch in (1, 8) for row in bench["timings"]]
    write(tmp_path / "bench.json", bench)
    (only,) = subjects(walk([tmp_path]))
    assert len(only.of("bench")) == 1


def test_a_kind_of_record_that_is_new_belongs_to_its_model_and_task(tmp_path: Path) -> None:
    for model in ("a", "b"):
        study(tmp_path / model, LAYOUT, model=model, ratios=(0.5,), seeds=1)
    write(tmp_path / "new.json", record("new", "a", "task", value=1))
    counts = {each.model: len(each.of("new")) for each in subjects(walk([tmp_path]))}
    assert counts == {"a": 1, "b": 0}


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
