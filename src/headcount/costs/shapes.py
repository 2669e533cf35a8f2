"""Shapes of the inputs that are timed, batch × tokens: one or several. Nothing here needs torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

from headcount.base.errors import UsageError

LEAST_ROUNDS = 6
"""Fewer cannot give a 95 % interval of a median."""

SEVERAL: dict[str, Any] = {"typed": tuple[int, ...]}
"""Metadata of an option that is a number, and on the command line a list of them."""


def shapes_of(
    batch: int | Sequence[int], length: int | Sequence[int] | None
) -> list[tuple[int, int | None]]:
    """Every combination of batches and lengths, each once; what cannot be is refused.

    >>> shapes_of([1, 8], 32)
    [(1, 32), (8, 32)]
    """
    batches = [batch] if isinstance(batch, int) else list(batch)
    lengths = [length] if isinstance(length, int) or length is None else list(length)
    for name, sizes in (("batch", batches), ("length", lengths)):
        if not sizes:
            raise UsageError(f"--{name} is a number or several, and none was given.")
    for examples in batches:
        if examples < 1:
            raise UsageError(f"A batch is at least 1 example, not {examples}.")
    for tokens in lengths:
        if tokens is not None and tokens < 1:
            raise UsageError(f"A length is at least 1 token, not {tokens}.")
    return list(dict.fromkeys(product(batches, lengths)))


def check_timing(seconds: float) -> None:
    """Refuse a time that does not end."""
    if not 0 <= seconds < math.inf:
        raise UsageError(f"--timing-seconds is a time of 0 seconds or more, not {seconds}.")


def check_rounds(rounds: int) -> None:
    """Refuse too few rounds for an interval."""
    if rounds < LEAST_ROUNDS:
        raise UsageError(
            f"{rounds} rounds are too few for a 95 % interval; take {LEAST_ROUNDS} or more."
        )


def unlisted(sizes: Any) -> object:
    """A list of one number as that number: both ask for the same, and are written the same.

    >>> unlisted((8,)), unlisted([1, 8]), unlisted(None)
    (8, (1, 8), None)
    """
    if isinstance(sizes, int) or sizes is None:
        return sizes
    return sizes[0] if len(sizes) == 1 else tuple(sizes)
