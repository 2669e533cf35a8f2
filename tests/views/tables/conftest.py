"""What a table looks like, as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console


@pytest.fixture
def shown() -> Callable[[Any], str]:
    """`shown(page)` is the page in a wide terminal, without blanks at the ends of lines."""

    def show(page: Any) -> str:
        console = Console(width=400)
        with console.capture() as captured:
            console.print(page)
        return "\n".join(line.rstrip() for line in captured.get().splitlines())

    return show
