from __future__ import annotations

from collections import Counter
from random import Random

from headcount.tasks.pocket import examples
from headcount.tasks.pocket.grammar import Clause, NounPhrase, active, passive
from headcount.tasks.pocket.lexicon import ADJECTIVES, LEMMAS, NOUNS, TRANSITIVE
from headcount.tasks.pocket.pairs import draw_event, mistake, say_twice, shared_places

DOG, CAT = NounPhrase(NOUNS[0], False), NounPhrase(NOUNS[1], True)


def content(text: str) -> Counter[int]:
    return Counter(LEMMAS[word] for word in text.split() if word in LEMMAS)


def test_both_sides_have_the_same_content_words_whatever_the_label() -> None:
    for row in examples("pocket-paraphrase", "train", 1000):
        assert content(row["text"]) == content(row["text_b"])
        assert row["text"] != row["text_b"]


def test_a_mistake_is_another_event() -> None:
    rng = Random(1)
    for _ in range(1000):
        event = draw_event(rng)
        other = mistake(rng, event)
        assert active(other) != active(event)
        assert passive(other) != passive(event)


def test_an_event_is_said_in_two_ways() -> None:
    event = Clause(DOG, TRANSITIVE[0], CAT)
    pairs = {say_twice(Random(seed), event, event) for seed in range(200)}
    said = {text for pair in pairs for text in pair}
    assert said == {"the dog chases the cats .", "the cats are chased by the dog ."}
    assert all(one != two for one, two in pairs)


def test_shared_places() -> None:
    big, small = ADJECTIVES[:2]
    event = Clause(DOG._replace(adjective=big), TRANSITIVE[0], CAT._replace(adjective=small))
    assert shared_places(event, event) == 5
    assert event.patient is not None
    turned = event._replace(subject=event.patient, patient=event.subject)
    assert shared_places(event, turned) == 1
    assert shared_places(event, turned._replace(verb=TRANSITIVE[1])) == 0
    heads = event._replace(subject=CAT._replace(adjective=big))
    assert shared_places(event, heads) == 4


def test_similar_words_do_not_make_similar_events() -> None:
    rows = examples("pocket-similarity", "train", 3000)
    same_words = [row["label"] for row in rows if content(row["text"]) == content(row["text_b"])]
    assert len(same_words) > 1000
    assert {1.0, 3.0, 5.0} <= set(same_words)
