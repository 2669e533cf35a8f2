from __future__ import annotations

from random import Random

from headcount.tasks.pocket.grammar import (
    Clause,
    NounPhrase,
    Prepositional,
    Relative,
    active,
    draw_clause,
    passive,
)
from headcount.tasks.pocket.lexicon import (
    ADJECTIVES,
    ENGLISH,
    INTRANSITIVE,
    NOUNS,
    PREPOSITIONS,
    TRANSITIVE,
)

DOG, CAT = NounPhrase(NOUNS[0], False), NounPhrase(NOUNS[1], True)


def say(words: list[str]) -> str:
    return " ".join(words)


def test_verbs_agree_with_their_subject_and_not_with_what_stands_between() -> None:
    near = DOG._replace(tail=Prepositional(PREPOSITIONS[0], CAT))
    assert (
        say(active(Clause(near, TRANSITIVE[0], CAT))) == "the dog near the cats chases the cats ."
    )
    who = CAT._replace(tail=Relative(TRANSITIVE[1], DOG, inverted=True))
    assert say(active(Clause(who, INTRANSITIVE[0]))) == "the cats who the dog follows sleep ."


def test_no_and_being() -> None:
    assert say(active(Clause(DOG, INTRANSITIVE[0], negated=True))) == "the dog does not sleep ."
    quality = Clause(CAT, None, quality=ADJECTIVES[0], negated=True)
    assert say(active(quality)) == "the cats are not big ."


def test_the_passive_says_the_same_the_other_way_round() -> None:
    assert say(passive(Clause(DOG, TRANSITIVE[0], CAT))) == "the cats are chased by the dog ."
    alone = Clause(DOG, INTRANSITIVE[1])
    assert passive(alone) == active(alone)


def test_what_is_drawn_can_be_said_in_known_words() -> None:
    rng = Random(0)
    clauses = [draw_clause(rng) for _ in range(300)]
    assert {word for each in clauses for word in (*active(each), *passive(each))} <= set(ENGLISH)
    tails = sum(each.subject.tail is not None for each in clauses)
    assert 200 < tails < 250
