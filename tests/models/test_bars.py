from __future__ import annotations

import sys

import pytest
from transformers.utils import logging

from headcount.models.bars import bars_on_terminals_only


@pytest.mark.parametrize("terminal", [True, False])
def test_bars_are_shown_on_terminals_only_and_come_back(terminal, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    logging.enable_progress_bar()
    with bars_on_terminals_only():
        assert logging.is_progress_bar_enabled() is terminal
    assert logging.is_progress_bar_enabled()


def test_a_users_choice_stays(monkeypatch):
    logging.disable_progress_bar()
    with bars_on_terminals_only():
        assert not logging.is_progress_bar_enabled()
    assert not logging.is_progress_bar_enabled()
    logging.enable_progress_bar()
