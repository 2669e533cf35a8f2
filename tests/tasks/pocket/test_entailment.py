from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from headcount.tasks.pocket import examples
from headcount.tasks.pocket.entailment import (
    CONTRADICTION,
    ENTAILMENT,
    LABELS,
    NEUTRAL,
    draw_claim,
    draw_scene,
)
from headcount.tasks.pocket.lexicon import ADJECTIVES, NOUNS, TRANSITIVE

LEMMA = {form: noun.singular for noun in NOUNS for form in noun[:2]}
OPPOSITE = {adjective.word: adjective.opposite for adjective in ADJECTIVES}
VERBS = {form for verb in TRANSITIVE for form in verb[:3]}


def judge(scene_words: list[str], words: list[str]) -> int:
    """Read the label off the two sentences: who is what, who does what."""
    nouns = [LEMMA[word] for word in words if word in LEMMA]
    negated = "not" in words
    qualities = [word for word in words if word in OPPOSITE]
    if qualities:
        place = next(at for at, word in enumerate(scene_words) if LEMMA.get(word) == nouns[0])
        known = scene_words[place - 1]
        if known not in (qualities[0], OPPOSITE[qualities[0]]):
            return NEUTRAL
        return CONTRADICTION if (known == qualities[0]) == negated else ENTAILMENT
    roles = _roles(scene_words)
    if _roles(words) != roles:
        return NEUTRAL
    return ENTAILMENT if negated == ("not" in scene_words) else CONTRADICTION


def _roles(words: list[str]) -> tuple[str, str]:
    """Who acts and who suffers: the first noun on each side of the verb."""
    verb = next(place for place, word in enumerate(words) if word in VERBS)
    before = next(LEMMA[word] for word in words if word in LEMMA)
    after = next(LEMMA[word] for word in words[verb:] if word in LEMMA)
    return (after, before) if "by" in words else (before, after)


def test_labels_follow_the_rule() -> None:
    for row in examples("pocket-entailment", "train", 3000):
        assert judge(row["text"].split(), row["text_b"].split()) == row["label"], row


def test_every_class_has_every_kind_of_claim() -> None:
    seen: Counter[tuple[int, bool, bool]] = Counter()
    for row in examples("pocket-entailment", "train", 3000):
        words = row["text_b"].split()
        seen[row["label"], "not" in words, any(word in OPPOSITE for word in words)] += 1
    assert len(seen) == 12
    assert min(seen.values()) > 150


@pytest.mark.parametrize("label", range(len(LABELS)))
def test_a_claim_names_people_of_the_scene(label: int) -> None:
    rng = Random(label)
    for _ in range(200):
        scene = draw_scene(rng)
        people = {person.noun.singular for person in scene.people}
        claim = draw_claim(rng, scene, label)
        assert {LEMMA[word] for word in claim if word in LEMMA} <= people
