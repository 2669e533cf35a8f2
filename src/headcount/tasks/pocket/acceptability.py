"""Sentences that follow the grammar and sentences with one mistake in them.

Mistakes: a verb in the wrong number (mostly behind an attractor noun), a determiner that clashes
with its noun, two neighbouring words swapped. Each needs a look at other words.
"""

from __future__ import annotations

from random import Random
from typing import Final

from headcount.tasks.pocket.grammar import PLAIN_FORMS, PocketRow, draw_clause, pick
from headcount.tasks.pocket.lexicon import (
    INTRANSITIVE,
    PLURAL_DETERMINERS,
    SINGULAR_DETERMINERS,
    TRANSITIVE,
)

LABELS: Final = ("unacceptable", "acceptable")


def _both_ways(pairs: list[tuple[str, str]]) -> dict[str, str]:
    return dict(pairs) | {second: first for first, second in pairs}


OTHER_NUMBER: Final = _both_ways(
    [(verb.singular, verb.plural) for verb in TRANSITIVE + INTRANSITIVE]
    + [("is", "are"), ("does", "do")]
)
OTHER_DETERMINER: Final = _both_ways(
    list(zip(SINGULAR_DETERMINERS[1:], PLURAL_DETERMINERS[1:], strict=True))
)


def _verbs(words: list[str]) -> list[int]:
    """Where the verbs stand that agree with a subject; the one behind `not` does not."""
    return [at for at, word in enumerate(words) if word in OTHER_NUMBER and words[at - 1] != "not"]


def spoil(rng: Random, words: list[str]) -> list[str]:
    """The words with one mistake."""
    words = list(words)
    kind = rng.random()
    verbs = _verbs(words)
    determiners = [at for at, word in enumerate(words) if word in OTHER_DETERMINER]
    if kind < 0.25 and determiners:
        at = pick(rng, determiners)
        words[at] = OTHER_DETERMINER[words[at]]
    elif kind < 0.75:
        at = pick(rng, verbs)
        words[at] = OTHER_NUMBER[words[at]]
    else:
        # Two verbs side by side may be swapped without a mistake, and the full stop stays last.
        pairs = [at for at in range(len(words) - 2) if not (at in verbs and at + 1 in verbs)]
        at = pick(rng, pairs)
        words[at], words[at + 1] = words[at + 1], words[at]
    return words


def example(rng: Random) -> PocketRow:
    """One sentence with its label."""
    words = pick(rng, PLAIN_FORMS)(draw_clause(rng))
    label = int(rng.random() < 0.5)
    return {"text": " ".join(words if label else spoil(rng, words)), "label": label}
