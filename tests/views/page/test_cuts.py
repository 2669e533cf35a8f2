"""Cuts as the slider takes them, and the orders they are replayed in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headcount.heads import Layout, Mask
from headcount.views.page.cuts import cuts, full_of, label_of, orders, size_of, wholes
from headcount.views.page.reading import bits
from headcount.views.page.subjects import PageSubject, subjects
from headcount.views.page.walk import ReportInput, walk
from page.made import cut, study, write

LAYOUT = Layout.of(encoder=[2, 2])


def test_a_cut_is_its_record(subject: PageSubject, found: ReportInput, files: Path) -> None:
    made = cuts(subject, found)
    assert [each["kept"] for each in made] == sorted((c["kept"] for c in made), reverse=True)
    record = json.loads((files / "search" / "runs" / "tried0.5" / "record.json").read_text())
    (own,) = [each for each in made if each["id"] == "tried0.5"]
    assert own["mask"] == bits(Mask.from_json(record["mask"]))
    assert own["score"]["value"] == record["scores"]["after"]["score"]
    assert own["difference"] == record["scores"]["difference"]
    assert (own["study"], own["method"], own["n"]) == ("search", "surgeon", 500)


def test_orders_are_of_one_study_method_and_seed(subject: PageSubject, found: ReportInput) -> None:
    made = cuts(subject, found)
    listed = orders(made)
    assert {(each["study"], each["method"], each["seed"]) for each in listed} == {
        ("curve", "random", 0), ("curve", "random", 1), ("curve", "surgeon", 0),
        ("curve", "surgeon", 1), ("search", "surgeon", 0),
    }  # fmt: skip
    assert listed[0]["method"] == "surgeon"  # as many cuts as random, and better ones
    for order in listed:
        assert len({made[place]["method"] for place in order["cuts"]}) == 1


def test_what_a_search_found_is_beside_its_order(subject: PageSubject, found: ReportInput) -> None:
    """The answer is scored on the held-out set, and the cuts on the slider on the selection set."""
    made = cuts(subject, found)
    (order,) = [each for each in orders(made) if each["study"] == "search"]
    assert {made[place]["set"] for place in order["cuts"]} == {"selection set"}
    assert order["rows"] == "250 to 500 rows of dev (selection set)"
    (held,) = order["held"]
    assert (made[held]["id"], made[held]["answers"]) == ("final", "search")
    assert made[held]["rows"] == "500 rows of dev (held-out set)"
    assert not any(held in each["cuts"] for each in orders(made))


def test_a_cut_on_other_rows_does_not_join(tmp_path: Path) -> None:
    study(tmp_path, LAYOUT, ratios=(0.25, 0.75), seeds=1)
    mask = Mask.parse("11", LAYOUT)
    other = cut("model", "task", mask, "surgeon", 0, "own", n=64, easier=0.05)
    write(tmp_path / "own" / "record.json", other)
    found = walk([tmp_path])
    made = cuts(subjects(found)[0], found)
    (own,) = [each for each in orders(made) if each["study"] is None]
    assert [made[place]["id"] for place in own["cuts"]] == ["own"]


def test_all_heads_once_for_every_set_of_rows(subject: PageSubject, found: ReportInput) -> None:
    listed = wholes(cuts(subject, found), full_of(subject))
    assert {(each["rows"], each["value"]) for each in listed} == {
        ("1,000 rows of dev", 0.9),
        ("250 rows of dev (selection set)", 0.97),
        ("500 rows of dev (selection set)", 0.95),
        ("500 rows of dev (held-out set)", 0.9),
    }
    assert len(listed) == 4


def test_a_cut_without_a_difference_has_that_of_its_scores(tmp_path: Path) -> None:
    study(tmp_path, LAYOUT, ratios=(0.5,), seeds=1)
    path = tmp_path / "curve" / "runs" / "random0.5-0" / "record.json"
    data = json.loads(path.read_text())
    del data["scores"]["difference"]
    path.write_text(json.dumps(data))
    found = walk([tmp_path])
    (own,) = [each for each in cuts(subjects(found)[0], found) if each["id"] == "random0.5-0"]
    lost = data["scores"]["after"]["score"] - data["scores"]["before"]["score"]
    assert own["difference"] == {"value": pytest.approx(lost), "low": None, "high": None}


def test_a_cut_of_its_own_joins_the_study_that_asks_the_same(tmp_path: Path) -> None:
    study(tmp_path, LAYOUT, ratios=(0.25, 0.75), seeds=1)
    mask = Mask.parse("11", LAYOUT)
    write(tmp_path / "own" / "record.json", cut("model", "task", mask, "surgeon", 0, "own"))
    found = walk([tmp_path])
    made = cuts(subjects(found)[0], found)
    listed = orders(made)
    assert {each["study"] for each in listed} == {"curve", "search"}
    joined = next(o for o in listed if (o["study"], o["method"]) == ("curve", "surgeon"))
    assert made[joined["cuts"][0]]["id"] == "own"


def test_a_damaged_record_is_named_and_left_out(tmp_path: Path) -> None:
    study(tmp_path, LAYOUT, ratios=(0.5,), seeds=1)
    path = tmp_path / "curve" / "runs" / "random0.5-0" / "record.json"
    data = json.loads(path.read_text())
    data["mask"]["kept"] = {"encoder": [[7], []]}
    path.write_text(json.dumps(data))
    found = walk([tmp_path])
    (only,) = subjects(found)
    made = cuts(only, found)
    assert "random" not in {each["method"] for each in made}
    ((name, why),) = found.skipped
    assert name == str(path)
    assert "encoder.0.7" in why


def test_labels_say_what_came_after() -> None:
    assert label_of({"method": "a", "repair": [{"name": "recover"}]}) == "a, recovered"
    assert label_of({"method": "a", "repair": [{"name": "finetune"}]}) == "a, fine-tuned"


def test_the_size_of_a_head_where_all_agree(subject: PageSubject, found: ReportInput) -> None:
    made = cuts(subject, found)
    assert size_of(made, 12) == {"before": 17000, "head": 1000}
    made[0]["parameters"] = [17000, 10]
    assert size_of(made, 12) is None


def test_the_whole_model_is_scored(subject: PageSubject) -> None:
    full = full_of(subject)
    assert full is not None
    assert (full["value"], full["n"], full["metric"]) == (0.9, 1000, "accuracy")
