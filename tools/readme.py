"""The README as a package index shows it: links into the repository become whole addresses.

hatchling calls this when it builds (`tool.hatch.metadata.hooks.custom`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")


def absolute(text: str, source: str) -> str:
    """Pictures as files, all else as pages of the repository at `source`.

    >>> absolute("[a](docs/a.md#b) ![p](p.png) [c](https://c)", "https://s")
    '[a](https://s/blob/main/docs/a.md#b) ![p](https://s/raw/main/p.png) [c](https://c)'
    """
    return LINK.sub(
        lambda match: (
            f"{match[1]}[{match[2]}]({source}/{'raw' if match[1] else 'blob'}/main/{match[3]})"
        ),
        text,
    )


class ReadmeHook(MetadataHookInterface):
    """Fills in the project's `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """As Markdown, with whole addresses."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata["urls"]["Source"]
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, source)}
