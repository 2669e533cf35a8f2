"""Opinions with negation and contrast: `the film is not dull but the girls never enjoy it`.

What counts is what the main clause says in the end. Praising and blaming words, negations and
contrasts are drawn independently of the label, so that counting words gives nothing.
"""

from __future__ import annotations

from random import Random
from typing import Final

from headcount.tasks.pocket.grammar import PocketRow, draw_phrase, pick, say_phrase
from headcount.tasks.pocket.lexicon import BLAME, DISLIKING, LIKING, PRAISE, TOPICS

LABELS: Final = ("negative", "positive")
NEGATIONS: Final = ("not", "never", "hardly")
VERDICTS: Final = (
    ("it is bad .", "they hate it ."),
    ("it is good .", "they like it ."),
)


def _topic(rng: Random) -> tuple[str, str, bool]:
    plural = rng.random() < 0.5
    determiner = pick(rng, ("the", "these", "those") if plural else ("the", "this", "that"))
    return determiner, pick(rng, TOPICS)[plural], plural


def _says(rng: Random, positive: bool, negation: float) -> list[str]:
    """A clause of the wanted sentiment about a topic."""
    negated = rng.random() < negation
    praising = positive != negated
    determiner, topic, plural = _topic(rng)
    out: list[str] = []
    if rng.random() < 0.5:
        out += [determiner, topic, "are" if plural else "is"]
        if negated:
            out.append(pick(rng, NEGATIONS))
        if rng.random() < 0.3:
            out.append("very")
        out.append(pick(rng, PRAISE if praising else BLAME))
        return out
    plural = True
    if rng.random() < 0.3:
        out.append("they")
    else:
        phrase = draw_phrase(rng, tail=0.2, varied=False)
        plural = phrase.plural
        say_phrase(out, phrase)
    verb = pick(rng, LIKING if praising else DISLIKING)
    if not negated:
        out.append(verb[plural])
    elif rng.random() < 0.5:
        out += ["do" if plural else "does", "not", verb[1]]
    else:
        out += [pick(rng, NEGATIONS[1:]), verb[plural]]
    return [*out, determiner, topic]


def draw_opinion(
    rng: Random, positive: bool, negation: float = 0.5, contrast: float = 0.6
) -> list[str]:
    """A sentence of the wanted sentiment: one clause, two that agree, or a contrast."""
    main = _says(rng, positive, negation)
    if rng.random() >= contrast:
        if rng.random() < 0.6:
            return [*main, "."]
        return [*_says(rng, positive, negation), "and", *main, "."]
    other = _says(rng, not positive, negation)
    kind = rng.random()
    if kind < 0.33:
        return [*other, "but", *main, "."]
    if kind < 0.67:
        return ["although", *other, ",", *main, "."]
    return [*main, "although", *other, "."]


def verdict(rng: Random, positive: bool) -> str:
    """What an opinion comes to, in plain words."""
    return pick(rng, VERDICTS[positive])


def example(rng: Random) -> PocketRow:
    """One opinion with its label."""
    label = int(rng.random() < 0.5)
    return {"text": " ".join(draw_opinion(rng, bool(label))), "label": label}
