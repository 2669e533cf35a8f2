from __future__ import annotations

import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.repair.repairs import (
    REPAIRS,
    as_repairs,
    make_repair,
    read_repairs,
    repair_name,
    repairs_identity,
    repairs_to_plain,
)

BOTH = (hc.Recover(ridge=0.1), hc.Finetune(steps=3))


def test_steps_are_given_by_value_or_name_one_or_several() -> None:
    assert as_repairs("recover") == as_repairs(hc.Recover()) == (hc.Recover(),)
    assert as_repairs(["finetune", hc.Recover()]) == (hc.Finetune(), hc.Recover())
    assert [repair_name(step) for step in BOTH] == ["recover", "finetune"]
    assert [type(make_repair(entry.name)) for entry in REPAIRS] == [
        hc.Recover,
        hc.Distil,
        hc.Lora,
        hc.Finetune,
    ]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("recovr", "Did you mean 'recover'"),
        ([hc.Recover(), "recover"], "named twice: recover, recover"),
        (7, "7 is no repair: see headcount ls repairs"),
        ([hc.Random()], r"Random\(.* is no repair"),
    ],
)
def test_what_is_no_repair_is_refused(wrong, says) -> None:
    with pytest.raises(UsageError, match=says):
        as_repairs(wrong)


def test_plain_data_gives_the_steps_back() -> None:
    assert read_repairs(repairs_to_plain(BOTH), "here") == BOTH
    short = ["recover", {"finetune": {"preset": "pocket", "steps": 3}}]
    assert read_repairs(short, "here") == (
        hc.Recover(),
        hc.Finetune(learning_rate=3e-4, warmup=0.1, weight_decay=0.01, steps=3),
    )


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("recover", "here is a list of repairs"),
        ([{"ridge": 1, "tokens": 2}], r"here\[0\] names no repair"),
        ([{"recover": {"rige": 1}}], "no option 'rige'.*Did you mean 'ridge'"),
        ([{"recover": 3}], r"here\[0\] is a int"),
        ([{"name": "melt"}], "no repair 'melt'"),
        ([{"recover": {"ridge": -1}}], "not negative"),
    ],
)
def test_damaged_steps_are_refused(wrong, says) -> None:
    with pytest.raises(UsageError, match=says):
        read_repairs(wrong, "here")


def test_the_identity_has_every_option_but_how_often_a_training_saves() -> None:
    named = repairs_identity(BOTH)
    assert (named["repair"], named["recover.ridge"]) == ("recover, finetune", 0.1)
    saved = repairs_identity((BOTH[0], hc.Finetune(steps=3, save_every=1)))
    assert saved == named != repairs_identity((BOTH[0], hc.Finetune(steps=4)))
    assert repairs_identity(BOTH[::-1])["repair"] == "finetune, recover"
    assert repairs_identity(()) == {"repair": None}
