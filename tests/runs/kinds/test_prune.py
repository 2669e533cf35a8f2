from __future__ import annotations

import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.pruning.methods import METHODS, make_method
from headcount.runs.kinds.prune import read_ratio
from headcount.runs.run import Run
from runs.kinds.asking import FEW, TASK, assert_asked_again


@pytest.mark.parametrize(
    ("method", "ratio", "share"),
    [
        (hc.Random(), 0.5, 0.5),
        (hc.Random(), 0, 0),
        (hc.Random(leave=1), None, None),
        (hc.Random(leave=1), 0.5, 0.5),
        (hc.Cluster(), "free", None),
        (hc.Cluster(), 1.0, 1.0),
        (hc.Pattern(keep="321"), None, None),
        (hc.Layers(empty="odd"), None, None),
        (make_method("all-heads"), None, None),
    ],
)
def test_the_share_that_is_asked_for(method, ratio, share):
    assert read_ratio(method, ratio) == share
    assert hc.Prune(method=method, ratio=ratio).share == share


@pytest.mark.parametrize(
    ("method", "ratio", "said"),
    [
        (hc.Random(), None, "'random' needs a ratio: pass --ratio, .* 0 to 1[.]$"),
        (hc.Random(), "free", "needs a ratio"),
        (hc.Surgeon(), "free", "needs a ratio"),
        (hc.Cluster(), None, "or --ratio free to let the method decide"),
        (hc.StraightThrough(), None, "or --ratio free"),
        (hc.Random(), 1.5, r"between 0 and 1, not 1\.5"),
        (hc.Random(), -1, "between 0 and 1, not -1"),
    ],
)
def test_a_ratio_that_is_missing_or_wrong_is_refused(method, ratio, said):
    with pytest.raises(UsageError, match=said):
        read_ratio(method, ratio)


@pytest.mark.parametrize("repair", [(hc.Recover(),), (hc.Finetune(),)])
def test_closed_gates_cannot_be_repaired(repair):
    hc.Prune(method=hc.Random(), ratio=0.5, gated=True)
    with pytest.raises(UsageError, match="Only a model without the heads can be repaired"):
        hc.Prune(method=hc.Random(), ratio=0.5, repair=repair, gated=True)


def test_trained_gates_are_no_closed_ones():
    with pytest.raises(UsageError, match="take them out"):
        hc.Prune(method=hc.Subset(), ratio=0.5, gated=True)
    with pytest.raises(UsageError, match="not negative: -1"):
        hc.Prune(method=hc.Random(), ratio=0.5, baseline=-1)


@pytest.mark.parametrize(
    "name", [entry.name for entry in METHODS if entry.name not in ("pattern", "layers")]
)
def test_only_options_that_were_set_are_a_method_s_own(name):
    assert hc.Prune(method=make_method(name)).method_options() == {}
    assert hc.Prune(method=make_method(name)).name == name


def test_own_options():
    assert hc.Prune(method=hc.Importance(step=0.25)).method_options() == {"step": 0.25}
    assert hc.Prune(method=hc.Pattern(keep="321")).method_options() == {"keep": "321"}
    assert hc.Prune(method=hc.Layers(empty="odd")).method_options() == {"empty": "odd"}


def test_a_record_asked_again_gives_the_same(trained):
    options = hc.Prune(method=hc.Random(), ratio=0.5, scoring=FEW, baseline=1)
    record = assert_asked_again(Run("prune", str(trained[1]), task=TASK, seed=3, options=options))
    assert "parameters" in record


def test_gates_that_are_closed_instead(trained):
    options = hc.Prune(
        method=hc.Importance(), ratio=0.5, scoring=FEW, baseline=0, gated=True,
        calibration=hc.Calibration(samples=8),
    )  # fmt: skip
    record = assert_asked_again(Run("prune", str(trained[1]), task=TASK, options=options))
    assert "parameters" not in record
