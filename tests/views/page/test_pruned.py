"""Pruned models as the slider takes them, and the orders they are replayed in."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from headcount.base.header import header
from headcount.heads import Layout, Mask
from headcount.views.page.pruned import (
    ModelSize,
    full_score,
    full_scores,
    label_of,
    model_size,
    pruned_models,
    removal_orders,
    varied_options,
)
from headcount.views.page.reading import Interval, bits, interval
from headcount.views.page.subjects import PageSubject, subjects
from headcount.views.page.walk import ReportInput, walk
from page.made import cut, study, write

LAYOUT = Layout.of(encoder=[2, 2])


def test_a_pruned_model_is_its_record(
    subject: PageSubject, report: ReportInput, files: Path
) -> None:
    made = pruned_models(subject, report)
    assert [each.kept for each in made] == sorted((c.kept for c in made), reverse=True)
    record = json.loads((files / "search" / "runs" / "tried0.5" / "record.json").read_text())
    (own,) = [each for each in made if each.id == "tried0.5"]
    assert own.mask == bits(Mask.from_json(record["mask"]))
    assert own.score.value == record["scores"]["after"]["score"]
    assert own.difference == interval(record["scores"]["difference"])
    assert (own.study, own.method, own.rows.n) == ("search", "surgeon", 500)


def test_orders_are_of_one_study_method_and_seed(subject: PageSubject, report: ReportInput) -> None:
    made = pruned_models(subject, report)
    listed = removal_orders(made)
    assert {(each.study, each.method, each.seed) for each in listed} == {
        ("curve", "random", 0), ("curve", "random", 1), ("curve", "surgeon", 0),
        ("curve", "surgeon", 1), ("search", "surgeon", 0),
    }  # fmt: skip
    assert listed[0].method == "surgeon"  # as many models as random, and better ones
    for order in listed:
        assert len({made[place].method for place in order.models}) == 1


def test_what_a_search_selected_is_beside_its_order(
    subject: PageSubject, report: ReportInput
) -> None:
    """It is scored on the held-out set, and the models of the slider on the selection set."""
    made = pruned_models(subject, report)
    (order,) = [each for each in removal_orders(made) if each.study == "search"]
    assert {made[place].rows.set for place in order.models} == {"selection set"}
    assert order.rows == "250 to 500 rows of dev (selection set)"
    (held,) = order.held_out
    assert (made[held].id, made[held].search) == ("final", "search")
    assert made[held].rows_text == "500 rows of dev (held-out set)"
    assert not any(held in each.models for each in removal_orders(made))


def test_a_model_scored_on_other_rows_does_not_join(tmp_path: Path) -> None:
    study(tmp_path, LAYOUT, ratios=(0.25, 0.75), seeds=1)
    mask = Mask.parse("11", LAYOUT)
    other = cut("model", "task", mask, "surgeon", 0, "own", n=64, easier=0.05)
    write(tmp_path / "own" / "record.json", other)
    report = walk([tmp_path])
    made = pruned_models(subjects(report)[0], report)
    (own,) = [each for each in removal_orders(made) if each.study is None]
    assert [made[place].id for place in own.models] == ["own"]


def test_all_heads_once_for_every_set_of_rows(subject: PageSubject, report: ReportInput) -> None:
    listed = full_scores(pruned_models(subject, report), full_score(subject))
    assert {(each.rows_text, each.score.value) for each in listed} == {
        ("1,000 rows of dev", 0.9),
        ("250 rows of dev (selection set)", 0.97),
        ("500 rows of dev (selection set)", 0.95),
        ("500 rows of dev (held-out set)", 0.9),
    }
    assert len(listed) == 4


def test_a_model_without_a_difference_has_that_of_its_scores(tmp_path: Path) -> None:
    study(tmp_path, LAYOUT, ratios=(0.5,), seeds=1)
    path = tmp_path / "curve" / "runs" / "random0.5-0" / "record.json"
    data = json.loads(path.read_text())
    del data["scores"]["difference"]
    path.write_text(json.dumps(data))
    report = walk([tmp_path])
    (own,) = [
        each for each in pruned_models(subjects(report)[0], report) if each.id == "random0.5-0"
    ]
    lost = data["scores"]["after"]["score"] - data["scores"]["before"]["score"]
    assert own.difference == Interval(pytest.approx(lost))


def test_a_model_outside_of_studies_joins_the_one_of_its_method(tmp_path: Path) -> None:
    study(tmp_path, LAYOUT, ratios=(0.25, 0.75), seeds=1)
    mask = Mask.parse("11", LAYOUT)
    write(tmp_path / "own" / "record.json", cut("model", "task", mask, "surgeon", 0, "own"))
    report = walk([tmp_path])
    made = pruned_models(subjects(report)[0], report)
    listed = removal_orders(made)
    assert {each.study for each in listed} == {"curve", "search"}
    joined = next(o for o in listed if (o.study, o.method) == ("curve", "surgeon"))
    assert made[joined.models[0]].id == "own"


def test_a_damaged_record_is_named_and_left_out(tmp_path: Path) -> None:
    study(tmp_path, LAYOUT, ratios=(0.5,), seeds=1)
    path = tmp_path / "curve" / "runs" / "random0.5-0" / "record.json"
    data = json.loads(path.read_text())
    data["mask"]["kept"] = {"encoder": [[7], []]}
    path.write_text(json.dumps(data))
    report = walk([tmp_path])
    (only,) = subjects(report)
    made = pruned_models(only, report)
    assert "random" not in {each.method for each in made}
    ((name, why),) = report.skipped
    assert name == str(path)
    assert "encoder.0.7" in why


def test_labels_say_what_came_after() -> None:
    assert label_of({"method": "a", "repair": [{"name": "recover"}]}) == "a, recovered"
    assert label_of({"method": "a", "repair": [{"name": "finetune"}]}) == "a, fine-tuned"


def test_the_size_of_a_head_where_all_agree(subject: PageSubject, report: ReportInput) -> None:
    made = pruned_models(subject, report)
    assert model_size(made, 12) == ModelSize(17000, 1000)
    made[0] = replace(made[0], parameters=(17000, 10))
    assert model_size(made, 12) is None


def test_the_whole_model_is_scored(subject: PageSubject) -> None:
    full = full_score(subject)
    assert full is not None
    assert (full.score.value, full.rows.n, full.metric) == (0.9, 1000, "accuracy")


def test_what_a_study_file_varies_is_in_the_name(study_file: Path) -> None:
    report = walk([study_file])
    (subject,) = subjects(report)
    names = {model.method for model in pruned_models(subject, report)}
    assert names == {"random, samples 64", "random, samples 256", "surgeon"}
    assert set(varied_options(subject.of("prune"), set()).values()) == set()


def test_all_repairs_are_in_the_name() -> None:
    record = {"method": "surgeon", "repair": [{"name": "recover"}, {"name": "finetune"}]}
    assert label_of(record) == "surgeon, recovered, fine-tuned"


def test_scores_that_are_a_number_are_passed_over(subject: PageSubject) -> None:
    """A damaged record of a prune ended the page with an AttributeError."""
    before = full_score(subject)
    assert subject.of("prune")
    for item in subject.of("prune"):
        item.data["scores"] = 0.5
    assert full_score(subject) == before  # that of the study


def test_of_a_search_the_runs_on_most_rows_count(tmp_path: Path) -> None:
    """A search scores a prune on samples first: those runs are no models of their own."""
    mask = Mask.parse("11", LAYOUT)
    for n in (256, 1000, 512):
        run = cut("model", "task", mask, "surgeon", 0, f"rows{n}", split="dev:selection:0.5:0", n=n)
        run["run"]["options"] = {"scoring": {"limit": n}}
        for folder in ("searched", "study"):
            write(tmp_path / folder / "runs" / str(n) / "record.json", run)
    for folder, name in (("searched", "search"), ("study", "limits")):
        plan = header("plan") | {"name": name, "asked": {}, "runs": []}
        write(tmp_path / folder / "studies" / f"{name}.json", plan)
    report = walk([tmp_path])
    made = pruned_models(subjects(report)[0], report)
    assert [model.id for model in made if model.study == "searched"] == ["rows1000"]
    assert {model.method for model in made if model.study == "searched"} == {"surgeon"}
    assert len([model for model in made if model.study == "study"]) == 3
