"""Figures beside other results: where they cannot be drawn, that costs the figures only."""

from __future__ import annotations

from importlib.util import find_spec

from headcount.base.errors import need_extra
from headcount.cli.common import say


def can_draw() -> bool:
    """Whether there will be figures; where not, it is said now, before any work."""
    if find_spec("matplotlib") is not None:
        return True
    say(f"headcount: There will be no figures. {need_extra('matplotlib', 'report')}")
    return False
