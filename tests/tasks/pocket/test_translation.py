from __future__ import annotations

from headcount.tasks.pocket import examples
from headcount.tasks.pocket.grammar import Clause, NounPhrase, Prepositional, Relative
from headcount.tasks.pocket.lexicon import ADJECTIVES, NOUNS, PREPOSITIONS, TRANSITIVE
from headcount.tasks.pocket.translation import say_foreign, vocabulary

DOG, CAT, BOY = (NounPhrase(NOUNS[place], False) for place in range(3))


def foreign(clause: Clause, *, in_passive: bool = False) -> str:
    return " ".join(say_foreign(clause, in_passive=in_passive))


def test_the_verb_comes_last_and_agrees() -> None:
    event = Clause(DOG, TRANSITIVE[0], CAT._replace(plural=True))
    assert foreign(event) == "kavo lo misu ri la ko rokat on"
    assert foreign(event, in_passive=True) == "misu ri la kavo lo de pa rokat ani"
    assert foreign(event._replace(negated=True)).endswith("na rokat on")


def test_adjectives_follow_and_modifiers_lead() -> None:
    near = Prepositional(PREPOSITIONS[0], CAT)
    subject = DOG._replace(adjective=ADJECTIVES[0], tail=near)
    assert foreign(Clause(subject, None, quality=ADJECTIVES[2])) == (
        "misu la ves kavo gor ok lo senek ok es on"
    )
    chasing = Relative(TRANSITIVE[0], CAT, inverted=False)
    chased = Relative(TRANSITIVE[0], CAT, inverted=True)
    assert foreign(Clause(DOG._replace(tail=chasing), None)).startswith(
        "misu la ko rokat on zu kavo"
    )
    assert foreign(Clause(DOG._replace(tail=chased), None)).startswith("misu la rokat an zu kavo")


def test_the_same_source_has_one_translation() -> None:
    known: dict[str, str] = {}
    for row in examples("pocket-translation", "train", 5000):
        assert known.setdefault(row["source"], row["target"]) == row["target"]


def test_all_words_are_in_the_vocabulary() -> None:
    words = {
        word
        for row in examples("pocket-translation", "train", 5000)
        for word in row["target"].split()
    }
    assert words == set(vocabulary())


def test_although_comes_first_there() -> None:
    rows = examples("pocket-translation", "train", 500)
    last = [row for row in rows if " although " in row["source"]]
    assert last
    noun = {form: entry.foreign for entry in NOUNS for form in entry[:2]}
    for row in last:
        second = row["source"].split(" although ")[1].split()
        concession = row["target"].split(" tun ")[0].split()
        assert any(noun[word] in concession for word in second if word in noun)
        assert {noun[word] for word in second if word in noun} <= set(concession)
