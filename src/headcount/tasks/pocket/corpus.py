"""The text a pocket BERT is pre-trained on: single sentences, and pairs that may belong together.

A pair is an event said twice, a scene with a claim about it, or an opinion with its verdict. Half
of the claims and retellings are true of the first sentence; in the others roles are mixed up, or
claims are false or unfounded. As with BERT's next sentences, the model is asked which is which.
Verdicts are always true and not asked about: what an opinion comes to is learnt from guessing them.
"""

from __future__ import annotations

from random import Random
from typing import Final

from headcount.tasks.pocket import entailment, pairs, sentiment
from headcount.tasks.pocket.grammar import PLAIN_FORMS, PocketRow, draw_clause, pick

APART, TOGETHER = 0, 1
REPEATED: Final = 0.3  # of the true events are said in the same words: to copy is learnt first
# What words mean is learnt first, and what negation and contrast do to them afterwards:
PLAIN: Final = 0.5  # of the opinions negate and contrast nothing
NEGATION: Final = 0.4  # of the claims about scenes, fewer than in the task
BYSTANDER: Final = 0.2  # of the scenes have a third person, whom the task does without


def _event_pair(rng: Random, label: int) -> tuple[str, str]:
    event = pairs.draw_event(rng, tails=0.5, negation=0.2)
    if label == TOGETHER:
        if rng.random() < REPEATED:
            text = " ".join(pick(rng, PLAIN_FORMS)(event))
            return text, text
        return pairs.say_twice(rng, event, event)
    change = pairs.mistake if rng.random() < 0.8 else pairs.replace_one
    return pairs.say_twice(rng, event, change(rng, event))


def _scene_pair(rng: Random, label: int) -> tuple[str, str]:
    scene = entailment.draw_scene(rng, bystander=rng.random() < BYSTANDER)
    relation = entailment.ENTAILMENT
    if label == APART:
        relation = pick(rng, (entailment.NEUTRAL, entailment.CONTRADICTION))
    text = " ".join(entailment.say_scene(rng, scene))
    return text, " ".join(entailment.draw_claim(rng, scene, relation, NEGATION))


def _opinion(rng: Random) -> PocketRow:
    positive = rng.random() < 0.5
    settings = (0.0, 0.0) if rng.random() < PLAIN else ()
    text = " ".join(sentiment.draw_opinion(rng, positive, *settings))
    return {"text": text, "text_b": sentiment.verdict(rng, positive), "together": None}


def example(rng: Random) -> PocketRow:
    """One sentence (`text_b` is None) or a pair, and whether its sides are `together` if asked."""
    kind = rng.random()
    if kind < 0.15:
        words = pick(rng, PLAIN_FORMS)(draw_clause(rng))
        return {"text": " ".join(words), "text_b": None, "together": None}
    if kind < 0.4:
        return _opinion(rng)
    make = _event_pair if kind < 0.65 else _scene_pair
    label = int(rng.random() < 0.5)
    text, text_b = make(rng, label)
    return {"text": text, "text_b": text_b, "together": label}
