"""The grammar of the pocket world: sentence trees, how they are drawn and how they are said.

A tree is said in English by the functions here, in the invented language by `translation`.
Trees are NamedTuples because the generator makes tens of thousands a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final, NamedTuple, TypeVar

from headcount.tasks.pocket.lexicon import (
    ADJECTIVES,
    INTRANSITIVE,
    NOUNS,
    PLURAL_DETERMINERS,
    PREPOSITIONS,
    SINGULAR_DETERMINERS,
    TRANSITIVE,
    Adjective,
    Noun,
    Verb,
)

T = TypeVar("T")
PocketRow = dict[str, str | int | float | None]
"""One example of a pocket task by field: texts and a label."""


class NounPhrase(NamedTuple):
    """`the big dog near the cats`, `these boys who sing`."""

    noun: Noun
    plural: bool
    determiner: str = "the"
    adjective: Adjective | None = None
    tail: Prepositional | Relative | None = None


class Prepositional(NamedTuple):
    """`near the cats`: a noun that is not the subject stands before the verb."""

    preposition: tuple[str, str]
    phrase: NounPhrase


class Relative(NamedTuple):
    """`who sings`, `who chases the cat`, or with `inverted` `who the cat chases`."""

    verb: Verb
    phrase: NounPhrase | None
    inverted: bool


class Clause(NamedTuple):
    """Who does what to whom; or, with `quality`, what someone is like."""

    subject: NounPhrase
    verb: Verb | None
    patient: NounPhrase | None = None
    quality: Adjective | None = None
    negated: bool = False


def pick(rng: Random, items: Sequence[T]) -> T:
    """One item; several times faster than `Random.choice`."""
    return items[int(rng.random() * len(items))]


# --- drawing ---------------------------------------------------------------------------------


def draw_simple(rng: Random, *, varied: bool, adjective: float = 0.4) -> NounPhrase:
    """A noun phrase without a tail; `varied` allows determiners other than `the`."""
    plural = rng.random() < 0.5
    determiner = "the"
    if varied:
        determiner = pick(rng, PLURAL_DETERMINERS if plural else SINGULAR_DETERMINERS)
    quality = pick(rng, ADJECTIVES) if rng.random() < adjective else None
    return NounPhrase(pick(rng, NOUNS), plural, determiner, quality)


def draw_tail(rng: Random, *, varied: bool) -> Prepositional | Relative:
    """A prepositional phrase or a relative clause of either kind."""
    kind = rng.random()
    if 0.5 <= kind < 0.6:
        return Relative(pick(rng, INTRANSITIVE), None, inverted=False)
    phrase = draw_simple(rng, varied=varied, adjective=0.2)
    if varied and rng.random() < 0.2:
        inner = draw_simple(rng, varied=varied, adjective=0.2)
        phrase = phrase._replace(tail=Prepositional(pick(rng, PREPOSITIONS), inner))
    if kind < 0.5:
        return Prepositional(pick(rng, PREPOSITIONS), phrase)
    return Relative(pick(rng, TRANSITIVE), phrase, inverted=kind < 0.8)


def draw_phrase(rng: Random, *, tail: float, varied: bool) -> NounPhrase:
    """A noun phrase that has a tail with the given probability."""
    phrase = draw_simple(rng, varied=varied)
    if rng.random() < tail:
        return phrase._replace(tail=draw_tail(rng, varied=varied))
    return phrase


def draw_clause(rng: Random) -> Clause:
    """Any clause of the language, its subject mostly with a tail."""
    subject = draw_phrase(rng, tail=0.75, varied=True)
    kind = rng.random()
    negated = rng.random() < 0.25
    if kind < 0.3:
        return Clause(subject, pick(rng, INTRANSITIVE), negated=negated)
    if kind < 0.45:
        return Clause(subject, None, quality=pick(rng, ADJECTIVES), negated=negated)
    patient = draw_phrase(rng, tail=0.2, varied=True)
    return Clause(subject, pick(rng, TRANSITIVE), patient, negated=negated)


# --- saying ----------------------------------------------------------------------------------


def say_phrase(out: list[str], phrase: NounPhrase) -> None:
    """Append a noun phrase to the words."""
    out.append(phrase.determiner)
    if phrase.adjective is not None:
        out.append(phrase.adjective.word)
    out.append(phrase.noun.plural if phrase.plural else phrase.noun.singular)
    tail = phrase.tail
    if tail is None:
        return
    if isinstance(tail, Prepositional):
        out.append(tail.preposition[0])
        say_phrase(out, tail.phrase)
        return
    out.append("who")
    if tail.phrase is None:
        out.append(finite(tail.verb, phrase.plural))
    elif tail.inverted:
        say_phrase(out, tail.phrase)
        out.append(finite(tail.verb, tail.phrase.plural))
    else:
        out.append(finite(tail.verb, phrase.plural))
        say_phrase(out, tail.phrase)


def finite(verb: Verb, plural: bool) -> str:
    """The form of a verb that agrees with its subject."""
    return verb.plural if plural else verb.singular


def say_be(out: list[str], plural: bool, negated: bool) -> None:
    """Append `is`, `are`, `is not` or `are not`."""
    out.append("are" if plural else "is")
    if negated:
        out.append("not")


def active(clause: Clause) -> list[str]:
    """`the dog chases the cats .`, `the dog does not sleep .`, `the dog is big .`"""
    out: list[str] = []
    subject, verb = clause.subject, clause.verb
    say_phrase(out, subject)
    if verb is None:
        say_be(out, subject.plural, clause.negated)
    elif clause.negated:
        out += ("do" if subject.plural else "does", "not", verb.plural)
    else:
        out.append(finite(verb, subject.plural))
    if clause.quality is not None:
        out.append(clause.quality.word)
    if clause.patient is not None:
        say_phrase(out, clause.patient)
    out.append(".")
    return out


def passive(clause: Clause) -> list[str]:
    """`the cats are chased by the dog .`; a clause without a patient stays active."""
    if clause.verb is None or clause.patient is None:
        return active(clause)
    out: list[str] = []
    say_phrase(out, clause.patient)
    say_be(out, clause.patient.plural, clause.negated)
    out += (clause.verb.participle, "by")
    say_phrase(out, clause.subject)
    out.append(".")
    return out


Form = Callable[[Clause], list[str]]
PLAIN_FORMS: Final[tuple[Form, ...]] = (active, active, passive)
