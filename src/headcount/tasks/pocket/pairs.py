"""Paraphrase and similarity: who did what to whom, said twice.

Both sides of a pair have nearly the same words whatever the label is; only the roles differ.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from headcount.tasks.pocket.grammar import (
    Clause,
    NounPhrase,
    Prepositional,
    draw_phrase,
    forms,
    pick,
)
from headcount.tasks.pocket.lexicon import ADJECTIVES, NOUNS, PREPOSITIONS, TRANSITIVE, Noun

LABELS: Final = ("different", "paraphrase")


def draw_event(rng: Random) -> Clause:
    """Someone does something to someone else; at most one of them has a tail."""
    tail = rng.random()
    while True:
        subject = draw_phrase(rng, tail=float(tail < 0.35), varied=False)
        patient = draw_phrase(rng, tail=float(0.35 <= tail < 0.7), varied=False)
        if subject.noun is not patient.noun:
            break
    return Clause(subject, pick(rng, TRANSITIVE), patient, negated=rng.random() < 0.2)


def say_twice(rng: Random, first: Clause, second: Clause) -> tuple[str, str]:
    """Two clauses in two different forms."""
    ways = forms(first)
    form = pick(rng, ways)
    others = [way for way in forms(second) if way is not form]
    return " ".join(form(first)), " ".join(pick(rng, others)(second))


def _swap_heads(one: NounPhrase, two: NounPhrase) -> tuple[NounPhrase, NounPhrase]:
    return (
        one._replace(noun=two.noun, plural=two.plural),
        two._replace(noun=one.noun, plural=one.plural),
    )


def mistake(rng: Random, event: Clause) -> Clause:
    """The event with its roles mixed up: other words in the same places, no new words."""
    subject, patient = event.subject, event.patient
    assert patient is not None
    # Mostly the whole phrases change places: nothing but the roles tells that from the truth.
    if rng.random() < 0.5:
        return event._replace(subject=patient, patient=subject)
    one, two = _swap_heads(subject, patient)
    changes = [event._replace(subject=one, patient=two)]
    if subject.adjective is not patient.adjective:
        changes.append(
            event._replace(
                subject=subject._replace(adjective=patient.adjective),
                patient=patient._replace(adjective=subject.adjective),
            )
        )
    for name, phrase in (("subject", subject), ("patient", patient)):
        if phrase.tail is not None and phrase.tail.phrase is not None:
            inner = phrase.tail.phrase
            if inner.noun is not phrase.noun:
                outer, inner = _swap_heads(phrase, inner)
                outer = outer._replace(tail=phrase.tail._replace(phrase=inner))
                changes.append(event._replace(**{name: outer}))
    return pick(rng, changes)


def paraphrase(rng: Random) -> dict[str, Any]:
    """An event said twice (1), or two events of the same words (0)."""
    event = draw_event(rng)
    label = int(rng.random() < 0.5)
    text, text_b = say_twice(rng, event, event if label else mistake(rng, event))
    return {"text": text, "text_b": text_b, "label": label}


def _nouns(rng: Random, count: int) -> list[tuple[Noun, bool]]:
    chosen: list[Noun] = []
    while len(chosen) < count:
        noun = pick(rng, NOUNS)
        if noun not in chosen:
            chosen.append(noun)
    return [(noun, rng.random() < 0.5) for noun in chosen]


_ORDERS: Final = ((0, 1, 2),) * 4 + ((1, 0, 2), (2, 1, 0), (0, 2, 1)) * 2 + ((1, 2, 0), (2, 0, 1))


def similarity(rng: Random) -> dict[str, Any]:
    """Two events and how many of five places (three nouns, two adjectives) they share.

    Another verb costs one point. Nouns and adjectives mostly change places, not words.
    """
    nouns = _nouns(rng, 4)
    qualities = (pick(rng, ADJECTIVES), pick(rng, ADJECTIVES))
    while qualities[0] is qualities[1]:
        qualities = (qualities[0], pick(rng, ADJECTIVES))
    order = list(pick(rng, _ORDERS))
    if rng.random() < 0.2:
        order[int(rng.random() * 3)] = 3
    swapped = rng.random() < 0.5
    verb = pick(rng, TRANSITIVE)
    verb_b = verb if rng.random() < 0.75 else pick(rng, TRANSITIVE)
    preposition = pick(rng, PREPOSITIONS)
    on_subject = rng.random() < 0.5

    def event(order: list[int], one: int, verb: Any) -> Clause:
        subject, patient, third = (NounPhrase(*nouns[place]) for place in order)
        tail = Prepositional(preposition, third)
        subject = subject._replace(adjective=qualities[one], tail=tail if on_subject else None)
        patient = patient._replace(adjective=qualities[1 - one], tail=None if on_subject else tail)
        return Clause(subject, verb, patient)

    first, second = event([0, 1, 2], 0, verb), event(order, int(swapped), verb_b)
    kept = sum(place == noun for place, noun in enumerate(order)) + 2 * (not swapped)
    score = max(0.0, float(kept - (verb is not verb_b)))
    text = " ".join(pick(rng, forms(first))(first))
    text_b = " ".join(pick(rng, forms(second))(second))
    return {"text": text, "text_b": text_b, "label": score}
