"""What is public in a room is imported when it is used, and not before."""

from __future__ import annotations

import subprocess
import sys

import pytest


def test_a_name_is_imported_when_it_is_used() -> None:
    code = (
        "import sys, headcount.models as models\n"
        "assert 'layout' in dir(models) and 'torch' not in sys.modules\n"
        "from headcount.models import layout\n"
        "assert 'torch' in sys.modules and vars(models)['layout'] is layout\n"
        "from headcount.models import find\n"
        "assert find.layout is layout"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_a_room_has_not_is_refused() -> None:
    with pytest.raises(ImportError, match="cannot import name 'laout'"):
        from headcount.models import laout  # noqa: F401
