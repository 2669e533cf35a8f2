"""The text a pocket BERT is pre-trained on: single sentences, and pairs that belong together.

A pair is an event said twice, a scene with something true about it, or an opinion with its
verdict. No label of any task is in it.
"""

from __future__ import annotations

from random import Random
from typing import Any

from headcount.tasks.pocket import entailment, pairs, sentiment
from headcount.tasks.pocket.grammar import PLAIN_FORMS, draw_clause, pick


def example(rng: Random) -> dict[str, Any]:
    """One sentence (`text_b` is None) or one pair."""
    kind = rng.random()
    if kind < 0.3:
        words = pick(rng, PLAIN_FORMS)(draw_clause(rng))
        return {"text": " ".join(words), "text_b": None}
    if kind < 0.55:
        event = pairs.draw_event(rng)
        text, text_b = pairs.say_twice(rng, event, event)
        return {"text": text, "text_b": text_b}
    if kind < 0.8:
        scene = entailment.draw_scene(rng)
        text = " ".join(entailment.say_scene(rng, scene))
        text_b = " ".join(entailment.draw_claim(rng, scene, entailment.ENTAILMENT))
        return {"text": text, "text_b": text_b}
    positive = rng.random() < 0.5
    text = " ".join(sentiment.draw_opinion(rng, positive))
    return {"text": text, "text_b": " ".join(sentiment.verdict(rng, positive))}
