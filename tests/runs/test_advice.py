from __future__ import annotations

import headcount as hc
from headcount.runs.advice import choose


def test_what_is_named_is_taken_as_it_is():
    named = choose(hc.Importance(step=0.05), None, task=True)
    assert (named.method, bool(named.repair), named.note) == (hc.Importance(step=0.05), False, None)
    repair = (hc.Recover(ridge=0.1),)
    assert choose("random", repair, task=False).repair == repair


def test_a_new_task_head_has_no_gradients_to_look_at():
    fresh = choose(None, None, task=True, fresh=True)
    assert fresh.method == hc.Cluster()
    assert "the task head is new" in (fresh.note or "")


def test_recovery_can_be_left_out():
    plain = choose(None, (), task=True)
    assert (plain.method, bool(plain.repair)) == (hc.Surgeon(), False)
    assert "solved again" not in (plain.note or "")
