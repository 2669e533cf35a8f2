"""Short names for content: one hash for weights, rows, files, options and records.

>>> digest("a") == digest([b"", "a"]) != digest("b")
True
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

Content = str | bytes | memoryview


def digest(content: Content | Iterable[Content], size: int = 8) -> str:
    """Hexadecimal digits for `size` bytes of a hash (BLAKE2b) of all pieces, one after another."""
    pieces = (content,) if isinstance(content, Content) else content
    hashed = hashlib.blake2b(digest_size=size)
    for piece in pieces:
        hashed.update(piece.encode() if isinstance(piece, str) else piece)
    return hashed.hexdigest()


def plain_digest(data: object) -> str:
    """A short name for plain data, whatever the order of its keys."""
    return digest(json.dumps(data, sort_keys=True, default=repr))
