"""Plain functions where a method is expected."""

from __future__ import annotations

import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.heads import Layout, Mask
from headcount.pruning.function import FunctionMethod, notes_of, source_digest
from headcount.pruning.methods import MethodInputs, as_method, name_of, read_method

LAYOUT = Layout.of(encoder=[4, 4])


def first_heads(model, calibration, ratio):
    """The first heads, whatever is looked at."""
    heads = model if isinstance(model, Layout) else hc.layout(model)
    return Mask(heads, frozenset(list(heads)[: heads.kept_at(ratio)]))


def test_a_function_decides_on_the_pocket_model(tmp_path):
    model = hc.load("pocket")
    assert hc.select(model, first_heads, 0.5).pattern == "888000"
    small = hc.prune("pocket", first_heads, 0.5, out=tmp_path / "small")
    assert small.record["method"] == "first_heads"
    assert small.record["heads"]["kept"] == "888000"
    (note,) = small.record.notes
    assert "cannot be repeated from the record alone" in note
    assert hc.prune("pocket", first_heads, 0.5, out=tmp_path / "small").mask == small.mask  # done


def test_a_record_can_be_read_and_not_repeated(tmp_path, cli):
    hc.prune("pocket", first_heads, 0.5, out=tmp_path / "small")
    record = hc.load_record(tmp_path / "small")
    where = f"{__name__}:first_heads"
    assert record.to_json()["run"]["options"]["method"] == {
        "name": "first_heads", "function": where, "source": source_digest(first_heads),
    }  # fmt: skip
    assert record.run.options.method == as_method(first_heads)
    ran = cli("run", tmp_path / "small", "--out", tmp_path / "again")
    assert ran.code == 2
    said = f"function 'first_heads' ({where}), which is not in the record: the run cannot be repea"
    assert said in ran.err
    assert cli("report", tmp_path / "small", "--out", tmp_path / "page.html").code == 0


def test_it_is_given_calibration_rows_where_there_are_any():
    seen = []

    def looking(model, calibration, ratio):
        seen.append(calibration)
        return first_heads(model, calibration, ratio)

    rows = [{"input_ids": None}]
    method = as_method(looking)
    assert method.needs == "calibration"
    for given in (MethodInputs(), MethodInputs(data=rows), MethodInputs(data=[], inputs=rows)):
        method.prepare(LAYOUT, given)(0.5, 0)
    assert seen == [None, rows, rows]
    hc.prune("pocket", looking, 0.5, calibration=hc.Calibration(rows=["the cat sleeps"] * 3))
    assert len(seen[-1]) == 3


def test_what_it_gives_is_checked():
    def of(result):
        def strange(model, calibration, ratio):
            return result

        return as_method(strange).prepare(LAYOUT, MethodInputs())

    with pytest.raises(UsageError, match=r"'strange' gave None, where a hc.Mask of .* is expected"):
        of(None)(0.5, 0)
    with pytest.raises(UsageError, match=r"'strange' gave .*, where a hc.Mask of"):
        of(Mask.full(Layout.of(encoder=[3])))(0.5, 0)
    with pytest.raises(UsageError, match=r"keeps 8 heads at ratio 0.5; of 8 heads 4 stay"):
        of(Mask.full(LAYOUT))(0.5, 0)
    with pytest.raises(UsageError, match="'strange' needs a ratio"):
        of(Mask.full(LAYOUT))(None, 0)


def test_names_and_options():
    def random(model, calibration, ratio):
        return first_heads(model, calibration, ratio)

    assert name_of(as_method(first_heads)) == "first_heads"
    with pytest.raises(UsageError, match="'random' has the name of a method that is registered"):
        as_method(random)
    with pytest.raises(UsageError, match="options of first_heads go into it, not beside it: step"):
        as_method(first_heads, {"step": 1})
    with pytest.raises(UsageError, match="is no method"):
        as_method(hc.Importance)
    plain = {"name": "f", "function": "m:g.<locals>.f", "source": "0"}
    assert name_of(read_method(plain, "x.json")) == "f"
    assert notes_of(as_method("surgeon")) == ()


def test_the_identity_is_what_the_function_does():
    def with_number(number):
        def chosen(model, calibration, ratio):
            return number

        return chosen

    def with_default(model, calibration, ratio, number=1):
        return number

    assert as_method(with_number(1)) == as_method(with_number(1)) != as_method(with_number(2))
    before = as_method(with_default)
    with_default.__defaults__ = (2,)
    assert as_method(with_default) != before
    names = {}
    exec("def typed(model, calibration, ratio): return 1", {"__name__": "prompt"}, names)
    assert isinstance(FunctionMethod.of(names["typed"]), FunctionMethod)  # without a source
