"""The text a pocket BERT is pre-trained on: single sentences, and pairs that may belong together.

A pair is an event said twice, a scene with a claim about it, or an opinion with a verdict. Half of
the second sentences are true of the first; in the others roles are mixed up, claims are false or
unfounded, verdicts are wrong. As with BERT's next sentences, the model is asked which is which.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from headcount.tasks.pocket import entailment, pairs, sentiment
from headcount.tasks.pocket.grammar import PLAIN_FORMS, draw_clause, pick

APART, TOGETHER = 0, 1
REPEATED: Final = 0.3  # of the true events are said in the same words: to copy is learnt first
# What words mean is learnt first, and what negation and contrast do to them afterwards:
PLAIN: Final = 0.5  # of the opinions negate and contrast nothing
NEGATION: Final = 0.25  # of the claims about scenes, fewer than in the task


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
    scene = entailment.draw_scene(rng, bystander=True)
    relation = entailment.ENTAILMENT
    if label == APART:
        relation = pick(rng, (entailment.NEUTRAL, entailment.CONTRADICTION))
    text = " ".join(entailment.say_scene(rng, scene))
    return text, " ".join(entailment.draw_claim(rng, scene, relation, NEGATION))


def _opinion_pair(rng: Random, label: int) -> tuple[str, str]:
    positive = rng.random() < 0.5
    settings = (0.0, 0.0) if rng.random() < PLAIN else ()
    text = " ".join(sentiment.draw_opinion(rng, positive, *settings))
    return text, sentiment.verdict(rng, positive == (label == TOGETHER))


def example(rng: Random) -> dict[str, Any]:
    """One sentence (`text_b` is None) or one pair, with whether its sides belong `together`."""
    kind = rng.random()
    if kind < 0.25:
        words = pick(rng, PLAIN_FORMS)(draw_clause(rng))
        return {"text": " ".join(words), "text_b": None, "together": None}
    make = _event_pair if kind < 0.55 else _scene_pair if kind < 0.85 else _opinion_pair
    label = int(rng.random() < 0.5)
    text, text_b = make(rng, label)
    return {"text": text, "text_b": text_b, "together": label}
