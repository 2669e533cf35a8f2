"""Paraphrase and similarity: who did what to whom, said twice.

Both sides of a pair have nearly the same words whatever the label is; only the roles differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final, TypeVar

from headcount.tasks.pocket.grammar import (
    PLAIN_FORMS,
    Clause,
    NounPhrase,
    PocketRow,
    active,
    draw_phrase,
    passive,
    pick,
)
from headcount.tasks.pocket.lexicon import ADJECTIVES, NOUNS, TRANSITIVE

T = TypeVar("T")
LABELS: Final = ("different", "paraphrase")


def draw_event(rng: Random, *, tails: float = 0.0, negation: float = 0.0) -> Clause:
    """Someone does something to someone else; at most one of them has a tail."""
    tail = rng.random()
    while True:
        subject = draw_phrase(rng, tail=float(tail < tails / 2), varied=False)
        patient = draw_phrase(rng, tail=float(tails / 2 <= tail < tails), varied=False)
        if subject.noun is not patient.noun:
            break
    return Clause(subject, pick(rng, TRANSITIVE), patient, negated=rng.random() < negation)


def say_twice(rng: Random, first: Clause, second: Clause) -> tuple[str, str]:
    """Two clauses, one active and one passive."""
    forms = (active, passive) if rng.random() < 0.5 else (passive, active)
    return " ".join(forms[0](first)), " ".join(forms[1](second))


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


def paraphrase(rng: Random) -> PocketRow:
    """An event said twice (1), or two events of the same words (0)."""
    event = draw_event(rng)
    label = int(rng.random() < 0.5)
    text, text_b = say_twice(rng, event, event if label else mistake(rng, event))
    return {"text": text, "text_b": text_b, "label": label}


def replace_one(rng: Random, event: Clause) -> Clause:
    """The event with one new word: another verb, noun or adjective."""
    subject, patient = event.subject, event.patient
    assert patient is not None
    kind = rng.random()
    if kind < 0.3:
        return event._replace(verb=_another(rng, TRANSITIVE, event.verb))
    if kind < 0.5:
        return event._replace(subject=subject._replace(noun=_another(rng, NOUNS, subject.noun)))
    if kind < 0.7:
        return event._replace(patient=patient._replace(noun=_another(rng, NOUNS, patient.noun)))
    name, phrase = ("subject", subject) if kind < 0.85 else ("patient", patient)
    phrase = phrase._replace(adjective=_another(rng, ADJECTIVES, phrase.adjective))
    return event._replace(**{name: phrase})


def _another(rng: Random, items: Sequence[T], than: object) -> T:
    while True:
        item = pick(rng, items)
        if item is not than:
            return item


def similarity(rng: Random) -> PocketRow:
    """Two events and how many of five places they share: who, whom, what each is like, the verb.

    Words mostly change places instead of being new, so that sharing words says little.
    """
    first = draw_event(rng)
    assert first.patient is not None
    subject = first.subject._replace(adjective=pick(rng, ADJECTIVES))
    patient = first.patient._replace(adjective=_another(rng, ADJECTIVES, subject.adjective))
    first = first._replace(subject=subject, patient=patient)
    if rng.random() < 0.5:  # who and whom
        subject, patient = _swap_heads(subject, patient)
    if rng.random() < 0.5:  # what each is like
        one, two = subject.adjective, patient.adjective
        subject, patient = subject._replace(adjective=two), patient._replace(adjective=one)
    second = first._replace(subject=subject, patient=patient)
    if rng.random() < 0.5:
        second = replace_one(rng, second)
    text = " ".join(pick(rng, PLAIN_FORMS)(first))
    text_b = " ".join(pick(rng, PLAIN_FORMS)(second))
    return {"text": text, "text_b": text_b, "label": float(shared_places(first, second))}


def shared_places(first: Clause, second: Clause) -> int:
    """Of who, whom, what each of them is like, and the verb: how many are the same."""
    one, two = first.patient, second.patient
    assert one is not None
    assert two is not None
    return (
        (first.verb is second.verb)
        + (first.subject.noun is second.subject.noun)
        + (first.subject.adjective is second.subject.adjective)
        + (one.noun is two.noun)
        + (one.adjective is two.adjective)
    )
