"""Entailment in three classes: does the second sentence follow from the first?

The first sentence tells an event and what its people are like; the second claims something about
one of them. The claim's words are nearly always in the first sentence too, negation stands on
either side in every class, so that only who-is-what decides.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final, NamedTuple

from headcount.tasks.pocket.grammar import (
    Clause,
    NounPhrase,
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
_BY_WORD: Final = {adjective.word: adjective for adjective in ADJECTIVES}


class Scene(NamedTuple):
    """A premise: an event between two people, a third one standing by, two of them described."""

    clause: Clause
    people: tuple[NounPhrase, NounPhrase, NounPhrase]  # who acts, who suffers, who stands by


def _other(rng: Random, quality: Adjective) -> Adjective:
    """Half the time the opposite, half the time something of another kind."""
    if rng.random() < 0.5:
        return _BY_WORD[quality.opposite]
    while True:
        other = pick(rng, ADJECTIVES)
        if other is not quality and other.word != quality.opposite:
            return other


def draw_scene(rng: Random) -> Scene:
    """An event with one bystander and two described people."""
    people: list[NounPhrase] = []
    while len(people) < 3:
        noun = pick(rng, NOUNS)
        if all(noun is not person.noun for person in people):
            people.append(NounPhrase(noun, rng.random() < 0.5))
    quality = pick(rng, ADJECTIVES)
    described = pick(rng, ((0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)))
    people[described[0]] = people[described[0]]._replace(adjective=quality)
    people[described[1]] = people[described[1]]._replace(adjective=_other(rng, quality))
    subject, patient, bystander = people
    tail = Prepositional(pick(rng, PREPOSITIONS), bystander)
    if rng.random() < 0.5:
        clause = Clause(subject._replace(tail=tail), pick(rng, TRANSITIVE), patient)
    else:
        clause = Clause(subject, pick(rng, TRANSITIVE), patient._replace(tail=tail))
    clause = clause._replace(negated=rng.random() < 0.5)
    return Scene(clause, (subject, patient, bystander))


def _bare(phrase: NounPhrase) -> NounPhrase:
    return NounPhrase(phrase.noun, phrase.plural)


def _unknown(rng: Random, scene: Scene, negated: bool) -> Clause:
    """A quality one person has, or its opposite, claimed of another person."""
    described = [person for person in scene.people if person.adjective is not None]
    whose, who = described if rng.random() < 0.5 else described[::-1]
    quality, own = whose.adjective, who.adjective
    assert quality is not None
    assert own is not None
    if rng.random() < 0.5 or own.word in (quality.word, quality.opposite):
        who = next(person for person in scene.people if person.adjective is None)
    if rng.random() < 0.5:
        quality = _BY_WORD[quality.opposite]
    return Clause(_bare(who), None, quality=quality, negated=negated)


def _about_quality(rng: Random, scene: Scene, label: int) -> Clause:
    """`the dog is not big .`"""
    negated = rng.random() < 0.5
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
    subject, patient, bystander = (_bare(person) for person in scene.people)
    verb, negated = scene.clause.verb, scene.clause.negated
    if label == NEUTRAL:
        roles = pick(
            rng,
            ((patient, subject), (bystander, patient), (subject, bystander), (bystander, subject)),
        )
        return Clause(roles[0], verb, roles[1], negated=rng.random() < 0.5)
    return Clause(subject, verb, patient, negated=negated != (label == CONTRADICTION))


def draw_claim(rng: Random, scene: Scene, label: int) -> list[str]:
    """A second sentence that stands to the scene as the label says."""
    if rng.random() < 0.5:
        return active(_about_quality(rng, scene, label))
    claim = _about_event(rng, scene, label)
    return (active if rng.random() < 0.5 else passive)(claim)


def say_scene(rng: Random, scene: Scene) -> list[str]:
    """The premise, active or passive."""
    return (active if rng.random() < 0.5 else passive)(scene.clause)


def example(rng: Random) -> dict[str, Any]:
    """One premise and claim with their label."""
    scene = draw_scene(rng)
    label = int(rng.random() * 3)
    text = " ".join(say_scene(rng, scene))
    return {"text": text, "text_b": " ".join(draw_claim(rng, scene, label)), "label": label}
