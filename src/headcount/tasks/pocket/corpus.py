"""The text a pocket BERT is pre-trained on: single sentences, and pairs that belong together.

A pair is an event said twice, a scene with something true about it, or an opinion with its
verdict; or a remark with an answer that opens with `yes`, `nearly`, `no` or `perhaps`, as talk
does, and goes on accordingly. To guess a hidden opening word, the two sides must be compared.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from headcount.tasks.pocket import entailment, pairs, sentiment
from headcount.tasks.pocket.grammar import PLAIN_FORMS, draw_clause, pick
from headcount.tasks.pocket.lexicon import MARKERS

YES, NEARLY, NO, PERHAPS = MARKERS
ANSWERS: Final = 0.6  # of the pairs open with a marker
# Fewer negations than in the sentiment task: where they are rare, adjectives are learnt first.
OPINION_NEGATION, VERDICT_NEGATION = 0.3, 0.15


def _event_pair(rng: Random, answer: bool) -> tuple[str, str]:
    event = pairs.draw_event(rng)
    kind = rng.random() if answer else 0.0
    if kind < 0.5:
        marker, other = YES, event
    elif kind < 0.8:
        marker, other = NO, pairs.mistake(rng, event)
    else:
        marker, other = NEARLY, pairs.replace_one(rng, event)
    text, text_b = pairs.say_twice(rng, event, other)
    return text, f"{marker} , {text_b}" if answer else text_b


def _scene_pair(rng: Random, answer: bool) -> tuple[str, str]:
    scene = entailment.draw_scene(rng)
    label = int(rng.random() * 3) if answer else entailment.ENTAILMENT
    text = " ".join(entailment.say_scene(rng, scene))
    text_b = " ".join(entailment.draw_claim(rng, scene, label))
    return text, f"{(YES, PERHAPS, NO)[label]} , {text_b}" if answer else text_b


def _opinion_pair(rng: Random, answer: bool) -> tuple[str, str]:
    positive = rng.random() < 0.5
    agrees = not answer or rng.random() < 0.5
    text = " ".join(sentiment.draw_opinion(rng, positive, OPINION_NEGATION))
    text_b = " ".join(sentiment.verdict(rng, positive == agrees, VERDICT_NEGATION))
    return text, f"{YES if agrees else NO} , {text_b}" if answer else text_b


def example(rng: Random) -> dict[str, Any]:
    """One sentence (`text_b` is None) or one pair."""
    kind = rng.random()
    if kind < 0.25:
        words = pick(rng, PLAIN_FORMS)(draw_clause(rng))
        return {"text": " ".join(words), "text_b": None}
    make = _event_pair if kind < 0.5 else _scene_pair if kind < 0.75 else _opinion_pair
    text, text_b = make(rng, rng.random() < ANSWERS)
    return {"text": text, "text_b": text_b}
