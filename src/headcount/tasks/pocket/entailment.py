"""Entailment in three classes: does the second sentence follow from the first?

The first sentence tells an event and what its people are like; the second claims something about
one of them. The claim's words are nearly always in the first sentence too, negation stands on
either side in every class, so that only who-is-what decides.
"""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

from headcount.tasks.pocket.grammar import (
    Clause,
    NounPhrase,
    PocketRow,
    Prepositional,
    active,
    passive,
    pick,
)
from headcount.tasks.pocket.lexicon import (
    ADJECTIVES,
    NOUNS,
    PREPOSITIONS,
    TRANSITIVE,
    Adjective,
)

LABELS: Final = ("entailment", "neutral", "contradiction")
ENTAILMENT, NEUTRAL, CONTRADICTION = range(3)
# Which of the people are described, the first with a quality that the second may contradict.
ORDERS: Final = ((0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1))
_BY_WORD: Final = {adjective.word: adjective for adjective in ADJECTIVES}


class Scene(NamedTuple):
    """A premise: an event between two people, perhaps a third one standing by; two described."""

    clause: Clause
    people: tuple[NounPhrase, ...]  # who acts, who suffers, who stands by


def _other(rng: Random, quality: Adjective, opposite: float) -> Adjective:
    """The opposite with the given chance, else something of another kind."""
    if rng.random() < opposite:
        return _BY_WORD[quality.opposite]
    while True:
        other = pick(rng, ADJECTIVES)
        if other is not quality and other.word != quality.opposite:
            return other


def draw_scene(rng: Random, *, bystander: bool = False) -> Scene:
    """An event with two described people; a third one makes it harder to tell who is what."""
    people: list[NounPhrase] = []
    while len(people) < 2 + bystander:
        noun = pick(rng, NOUNS)
        if all(noun is not person.noun for person in people):
            people.append(NounPhrase(noun, rng.random() < 0.5))
    quality = pick(rng, ADJECTIVES)
    described = pick(rng, ORDERS if bystander else ORDERS[:2])
    people[described[0]] = people[described[0]]._replace(adjective=quality)
    other = _other(rng, quality, 0.5 if bystander else 0.0)
    people[described[1]] = people[described[1]]._replace(adjective=other)
    subject, patient = people[:2]
    if bystander:
        tail = Prepositional(pick(rng, PREPOSITIONS), people[2])
        if rng.random() < 0.5:
            subject = subject._replace(tail=tail)
        else:
            patient = patient._replace(tail=tail)
    verb = pick(rng, TRANSITIVE)
    return Scene(Clause(subject, verb, patient, negated=rng.random() < 0.5), tuple(people))


def _bare(phrase: NounPhrase) -> NounPhrase:
    return NounPhrase(phrase.noun, phrase.plural)


def _unknown(rng: Random, scene: Scene, negated: bool) -> Clause:
    """A quality one person has, or its opposite, claimed of another person."""
    described = [person for person in scene.people if person.adjective is not None]
    whose, who = described if rng.random() < 0.5 else described[::-1]
    quality, present = whose.adjective, who.adjective
    assert quality is not None
    assert present is not None
    bare = [person for person in scene.people if person.adjective is None]
    if bare and (rng.random() < 0.5 or present.word in (quality.word, quality.opposite)):
        who = bare[0]
    if rng.random() < 0.5:
        quality = _BY_WORD[quality.opposite]
    return Clause(_bare(who), None, quality=quality, negated=negated)


def _about_quality(rng: Random, scene: Scene, label: int, negation: float) -> Clause:
    """`the dog is not big .`"""
    negated = rng.random() < negation
    if label == NEUTRAL:
        return _unknown(rng, scene, negated)
    person = pick(rng, [person for person in scene.people if person.adjective is not None])
    quality = person.adjective
    assert quality is not None
    if negated != (label == CONTRADICTION):
        quality = _BY_WORD[quality.opposite]
    return Clause(_bare(person), None, quality=quality, negated=negated)


def _about_event(rng: Random, scene: Scene, label: int) -> Clause:
    """`the cat is not chased by the dog .`"""
    people = [_bare(person) for person in scene.people]
    subject, patient = people[:2]
    verb, negated = scene.clause.verb, scene.clause.negated
    if label == NEUTRAL:
        others = [(patient, subject)]
        for bystander in people[2:]:
            others += [(bystander, patient), (subject, bystander), (bystander, subject)]
        agent, sufferer = pick(rng, others)
        return Clause(agent, verb, sufferer, negated=rng.random() < 0.5)
    return Clause(subject, verb, patient, negated=negated != (label == CONTRADICTION))


def draw_claim(rng: Random, scene: Scene, label: int, negation: float = 0.5) -> list[str]:
    """A second sentence that stands to the scene as the label says."""
    if rng.random() < 0.5:
        return active(_about_quality(rng, scene, label, negation))
    claim = _about_event(rng, scene, label)
    return (active if rng.random() < 0.5 else passive)(claim)


def say_scene(rng: Random, scene: Scene) -> list[str]:
    """The premise, active or passive."""
    return (active if rng.random() < 0.5 else passive)(scene.clause)


def example(rng: Random) -> PocketRow:
    """One premise and claim with their label."""
    scene = draw_scene(rng)
    label = int(rng.random() * 3)
    text = " ".join(say_scene(rng, scene))
    return {"text": text, "text_b": " ".join(draw_claim(rng, scene, label)), "label": label}
