from __future__ import annotations

from random import Random

from headcount.tasks.pocket import examples
from headcount.tasks.pocket.acceptability import OTHER_DETERMINER, OTHER_NUMBER, spoil
from headcount.tasks.pocket.grammar import PLAIN_FORMS, draw_clause, pick
from headcount.tasks.pocket.lexicon import NOUNS

NUMBER = {noun.singular: False for noun in NOUNS} | {noun.plural: True for noun in NOUNS}
SINGULAR = {"a", "this", "that", "every"}


def test_one_mistake_is_one_word_or_one_swap() -> None:
    rng = Random(0)
    kinds = {"verb": 0, "determiner": 0, "swap": 0}
    for _ in range(2000):
        words = pick(rng, PLAIN_FORMS)(draw_clause(rng))
        bad = spoil(rng, words)
        places = [place for place, (a, b) in enumerate(zip(words, bad, strict=True)) if a != b]
        if len(places) == 1:
            word = words[places[0]]
            assert bad[places[0]] in (OTHER_NUMBER.get(word), OTHER_DETERMINER.get(word))
            kinds["verb" if word in OTHER_NUMBER else "determiner"] += 1
        else:
            first, second = places
            assert second == first + 1
            assert (bad[first], bad[second]) == (words[second], words[first])
            assert second < len(words) - 1
            kinds["swap"] += 1
    assert all(count > 200 for count in kinds.values())


def test_acceptable_sentences_have_no_clash() -> None:
    for row in examples("pocket-acceptability", "train", 1000):
        if row["label"] == 0:
            continue
        words = row["text"].split()
        for place, word in enumerate(words):
            if word in OTHER_DETERMINER:
                noun = next(after for after in words[place:] if after in NUMBER)
                assert NUMBER[noun] == (word not in SINGULAR)


def test_attractors_stand_between_subject_and_verb() -> None:
    # Without them, the noun before a verb would give its number away.
    misled = total = 0
    for row in examples("pocket-acceptability", "dev", 2000):
        words = row["text"].split()
        for place, word in enumerate(words):
            if row["label"] and word in ("is", "are") and words[place - 1] in NUMBER:
                total += 1
                misled += NUMBER[words[place - 1]] != (word == "are")
    assert misled > 0.12 * total
