"""A run that measures nothing."""

from __future__ import annotations

import time

import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.runs.kinds.probe import Probe
from headcount.runs.run import Run


def test_a_probe_says_what_it_was_asked_to_and_uses_the_processor():
    began = time.process_time()
    record = hc.run(Run("probe", "none", options=Probe(work=0.05, say="hello"), seed=3))
    assert time.process_time() - began >= 0.05
    assert (record["message"], record["seed"]) == ("hello", 3)


def test_a_probe_fails_where_it_is_asked_to():
    with pytest.raises(UsageError, match=r"asked to fail\. why"):
        hc.run(Run("probe", "none", options=Probe(fail=True, say="why")))
    with pytest.raises(UsageError, match="0 seconds or more"):
        Probe(wait=-1)
