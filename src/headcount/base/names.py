"""Names that a user may get wrong: the nearest known one, and one refusal for all of them.

And the one name that nobody should have to read: that of a drawn half of a split.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from headcount.base.errors import UsageError

LONGEST = 100
"""Characters of the longest name that is offered: what is longer is no name."""
HALF = re.compile(r"(.+):(selection|held-out):([0-9.]+):([0-9]+)")
"""The name of a half of a split: the split, its side, the share that is held out, the seed."""
SETS = {"selection": "selection set", "held-out": "held-out set"}
"""A half of a split -> what it is for."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` Did you mean 'cos'?` for the closest known name, or an empty string.

    >>> did_you_mean("coss", ["cos", "js"])
    " Did you mean 'cos'?"
    """
    close = nearest(name, known)
    return f" Did you mean '{close}'?" if close else ""


def nearest(name: str, known: Iterable[str], likeness: float = 0.5) -> str | None:
    """The closest known name that is at least so like it, 0 to 1.

    >>> nearest("ratois", ["ratios", "seeds"], 0.8), nearest("colour", ["source"], 0.8)
    ('ratios', None)
    """
    near = [other for other in known if len(other) <= LONGEST]
    close = difflib.get_close_matches(str(name)[:LONGEST], near, n=1, cutoff=likeness)
    return close[0] if close else None


def unknown(
    says: str, name: str, known: Iterable[str], *, has: str | None = "Known", most: int = 100
) -> UsageError:
    """The refusal of a name: what is wrong, the nearest name, and what is known (`most` of it).

    >>> str(unknown("There is no stack 'crss'", "crss", ["encoder", "cross"]))
    "There is no stack 'crss'. Did you mean 'cross'? Known: encoder, cross."
    """
    known = list(known)
    listed = f" {has}: {', '.join(known[:most]) or 'none'}." if has else ""
    return UsageError(f"{says}.{did_you_mean(name, known)}{listed}")


def require(kind: str, name: str, known: Iterable[str]) -> str:
    """The name itself when it is one of the known ones of its kind; else it is refused."""
    known = list(known)
    if name not in known:
        raise unknown(f"There is no {kind} '{name}'", name, known)
    return name


def split_words(split: object, rows: int | None = None) -> str:
    """A split as people call it, with its number of rows where that is given.

    >>> split_words("dev"), split_words("dev", 1000)
    ('dev', '1,000 rows of dev')
    >>> split_words("dev:held-out:0.5:0", 400), split_words("dev:selection:0.3:7")
    ('half of dev (held-out set, 400 rows)', '70 % of dev (selection set, drawn with seed 7)')
    """
    half = HALF.fullmatch(str(split))
    if half is None:
        return str(split) if rows is None else f"{rows:,} rows of {split}"
    name, side, number, seed = half.groups()
    try:
        share = float(number)
    except ValueError:
        return str(split)
    share = share if side == "held-out" else 1 - share
    about = [SETS[side]] + ([f"drawn with seed {seed}"] if int(seed) else [])
    about += [] if rows is None else [f"{rows:,} rows"]
    part = "half" if share == 0.5 else f"{100 * share:.3g} %"
    return f"{part} of {name} ({', '.join(about)})"
