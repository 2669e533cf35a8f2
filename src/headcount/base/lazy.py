"""The public names of a room, each imported when it is first used.

if TYPE_CHECKING:
    from headcount.models.find import layout as layout

__getattr__, __dir__ = lazily(__name__)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module


def lazily(room: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a room: the names that its file imports for type checkers."""
    package = sys.modules[room]

    @cache
    def modules() -> dict[str, str]:
        import re

        assert package.__file__ is not None
        with open(package.__file__, encoding="utf-8") as file:
            lines = re.findall(r"^    from (\S+) import (\w+) as \2$", file.read(), re.M)
        return {name: module for module, name in lines}

    def fetch(name: str) -> object:
        if name.startswith("__") or name not in modules():
            raise AttributeError(f"module '{room}' has no attribute '{name}'", name=name)
        value = getattr(import_module(modules()[name]), name)
        setattr(package, name, value)
        return value

    return fetch, lambda: sorted({*vars(package), *modules()})
