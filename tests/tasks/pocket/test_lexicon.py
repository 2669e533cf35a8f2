from __future__ import annotations

from headcount.tasks.pocket.lexicon import (
    ADJECTIVES,
    ENGLISH,
    INTRANSITIVE,
    LEMMAS,
    NOUNS,
    STEMS,
    TRANSITIVE,
)


def test_every_word_has_one_translation_of_its_own() -> None:
    foreign = [word.foreign for word in (*NOUNS, *TRANSITIVE, *INTRANSITIVE, *ADJECTIVES)]
    assert len(set(foreign)) == len(foreign)
    assert {noun.gender for noun in NOUNS} == {0, 1, 2}


def test_opposites_go_both_ways() -> None:
    opposite = {each.word: each.opposite for each in ADJECTIVES}
    assert all(opposite[other] == word for word, other in opposite.items())


def test_forms_of_a_word_have_one_number_and_one_stem() -> None:
    assert LEMMAS["chases"] == LEMMAS["chase"] == LEMMAS["chased"] != LEMMAS["follow"]
    assert len(set(ENGLISH)) == len(ENGLISH)
    assert set(STEMS) < set(ENGLISH)
    assert "chase" in STEMS
    assert not {"chases", "chased", "dogs"} & set(STEMS)
