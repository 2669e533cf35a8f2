from __future__ import annotations

import json
import math
from collections.abc import Mapping

import numpy as np
import pytest

import headcount as hc
from headcount.base.errors import NotFoundError, UsageError
from headcount.base.header import header
from headcount.runs.prune_result import PruneResult
from headcount.runs.record import FILE, Record, load_record, read_result, result_of
from headcount.runs.results import PlainResult
from headcount.runs.run import Run
from models.zoo import build
from runs.whole import result

RUN = Run("prune", "bert", task="mrpc", options=hc.Prune(method=hc.Random(), ratio=0.5))
MADE = Record(
    run=RUN,
    identity={"seed": 0, "device": "cpu", "versions": {"torch": "2"}, "model": "bert"},
    result=result(PruneResult, {"method": "random", "heads": {"after": 3}, "ratio": math.nan}),
    rows={"evaluation": {"split": "dev", "n": 9, "seed": None, "fingerprint": "0a"}},
    notes=("little was scored",),
    command="headcount prune bert",
    seconds=1.5,
)


def test_what_is_saved_is_loaded(tmp_path):
    path = MADE.save(tmp_path)
    assert path == tmp_path / FILE
    assert [each.name for each in tmp_path.iterdir()] == [FILE]
    for where in (path, tmp_path):
        found = load_record(where)
        assert found.to_json() == MADE.to_json() == json.loads(path.read_text())
        assert (found.run, found.id, found.notes) == (RUN, MADE.id, MADE.notes)
    assert hc.load_record is load_record


def test_it_is_a_mapping_of_all_of_its_file():
    assert isinstance(MADE, Mapping)
    assert {name: MADE[name] for name in header("prune")} == header("prune")
    assert MADE["run"] == RUN.to_plain()
    assert (MADE["method"], MADE["ratio"], MADE["device"]) == ("random", None, "cpu")
    assert len(MADE) == len(list(MADE)) == len(MADE.to_json())
    with pytest.raises(KeyError):
        MADE["nothing"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "has version 2, and this headcount reads 1"),
        ({"format": 1}, "is no record of headcount"),
        ({"id": "0" * 16}, "is damaged: its id is not that of its identity"),
        ({"identity": {"seed": 1}}, "is damaged"),
        ({"identity": []}, "has a wrong 'identity'"),
        ({"notes": "none"}, "has a wrong 'notes'"),
        ({"seconds": "1"}, "has a wrong 'seconds'"),
        ({"run": {"kind": "prun"}}, "Did you mean 'prune'"),
        ({"heads": 3}, "is damaged: heads: 3 is no object"),
        ({"heads": {"before": 3, "kept": ""}}, "is damaged: heads: it lacks 'after'"),
        ({"ratio": "most"}, "is damaged: ratio: 'most' is not a number"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_no_record_is_refused_by_its_name(tmp_path, change, said):
    path = MADE.save(tmp_path)
    path.write_text(json.dumps(MADE.to_json() | change))
    with pytest.raises(UsageError, match=said) as error:
        load_record(tmp_path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "name", ["format", "version", "kind", "id", "run", "identity", "rows", "notes", "seconds"]
)
def test_a_record_that_lacks_something_is_refused(tmp_path, name):
    path = MADE.save(tmp_path)
    data = MADE.to_json()
    del data[name]
    path.write_text(json.dumps(data))
    with pytest.raises(UsageError, match=f"lacks '{name}'|is no record of headcount"):
        load_record(path)


def test_a_file_that_is_cut_short_or_missing_is_refused_by_its_name(tmp_path):
    with pytest.raises(NotFoundError, match="Cannot read the record"):
        load_record(tmp_path)
    path = MADE.save(tmp_path)
    path.write_text(path.read_text()[:-9])
    with pytest.raises(UsageError, match=r"record\.json is no record") as error:
        load_record(tmp_path)
    assert "\n" not in str(error.value)


def test_a_record_is_whole_or_not_there(tmp_path, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", killed)
        patch.setattr("pathlib.Path.replace", killed)
        with pytest.raises(KeyboardInterrupt):
            MADE.save(tmp_path)
    assert not (tmp_path / FILE).exists()


def test_it_is_shown_in_one_line_and_as_a_table():
    bold = result(PruneResult, {"method": "<b>bold</b>"})
    shown = Record(run=RUN, identity={}, result=bold, notes=("<i>",))
    assert repr(shown) == f"Record(prune of bert on mrpc, {shown.id})"
    text = shown._repr_html_()
    assert "&lt;b&gt;bold&lt;/b&gt;" in text
    assert "<b>bold" not in text
    assert "<i>" not in text
    chain = Run("prune", RUN, options=RUN.options)
    shown = Record(run=chain, identity={}, result=PlainResult())
    assert repr(shown).startswith("Record(prune of prune, ")


def test_values_that_were_given_are_in_a_record_that_can_be_read(tmp_path):
    model = build("bert")
    scores = hc.Scores(hc.layout(model), tuple(range(16)))
    far = {"encoder": np.ones((16, 16)) - np.eye(16)}
    for name, method in (("a", hc.Importance(scores=scores)), ("b", hc.Cluster(redundancy=far))):
        found = hc.prune(model, method, 0.5, out=tmp_path / name)
        assert load_record(tmp_path / name).to_json() == json.loads(
            json.dumps(found.record.to_json(), default=str)
        )
        assert hc.prune(model, method, 0.5, out=tmp_path / name).mask == found.mask


def test_the_result_of_a_record_is_of_the_type_of_its_kind(tmp_path):
    MADE.save(tmp_path)
    again = load_record(tmp_path)
    assert again.result_as(PruneResult).heads.after == 3
    assert result_of(MADE.to_json()) == again.result
    assert read_result(PruneResult, MADE.to_json()) == again.result
    with pytest.raises(UsageError, match="kind 'prune' has no PlainResult"):
        again.result_as(PlainResult)
    with pytest.raises(UsageError, match=r"x\.json is damaged: it lacks 'model'"):
        read_result(PruneResult, {}, "x.json")


def test_a_result_may_not_have_a_key_of_every_record():
    with pytest.raises(ValueError, match="a 'seconds' of its own"):
        Record(run=RUN, identity={}, result=PlainResult(data={"seconds": 1}))
