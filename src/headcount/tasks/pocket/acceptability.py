"""Sentences that follow the grammar and sentences with one mistake in them.

Mistakes: a verb in the wrong number (mostly behind an attractor noun), a determiner that clashes
with its noun, two neighbouring words swapped. Each needs a look at other words.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from headcount.tasks.pocket.grammar import PLAIN_FORMS, draw_clause, pick
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
    return [
        place
        for place, word in enumerate(words)
        if word in OTHER_NUMBER and words[place - 1] != "not"
    ]


def spoil(rng: Random, words: list[str]) -> list[str]:
    """The words with one mistake."""
    words = list(words)
    kind = rng.random()
    verbs = _verbs(words)
    determiners = [place for place, word in enumerate(words) if word in OTHER_DETERMINER]
    if kind < 0.25 and determiners:
        place = pick(rng, determiners)
        words[place] = OTHER_DETERMINER[words[place]]
    elif kind < 0.75:
        place = pick(rng, verbs)
        words[place] = OTHER_NUMBER[words[place]]
    else:
        # Two verbs side by side may be swapped without a mistake, and the full stop stays last.
        places = [
            place for place in range(len(words) - 2) if not (place in verbs and place + 1 in verbs)
        ]
        place = pick(rng, places)
        words[place], words[place + 1] = words[place + 1], words[place]
    return words


def example(rng: Random) -> dict[str, Any]:
    """One sentence with its label."""
    words = pick(rng, PLAIN_FORMS)(draw_clause(rng))
    label = int(rng.random() < 0.5)
    return {"text": " ".join(words if label else spoil(rng, words)), "label": label}
