from __future__ import annotations

from collections import Counter

from headcount.tasks.pocket import examples
from headcount.tasks.pocket.lexicon import BLAME, DISLIKING, LIKING, PRAISE

GOOD = {*PRAISE, *(form for verb in LIKING for form in verb)}
BAD = {*BLAME, *(form for verb in DISLIKING for form in verb)}


def says(words: list[str]) -> bool:
    """The sentiment of one clause, read off the page."""
    (opinion,) = [word for word in words if word in GOOD | BAD]
    negated = any(word in ("not", "never", "hardly") for word in words)
    return (opinion in GOOD) != negated


def judge(text: str) -> bool:
    """The sentiment of a sentence, by the rule the task states."""
    words = text.split()[:-1]
    if words[0] == "although":
        return says(words[words.index(",") :])
    for joint, main in (("but", 1), ("although", 0), ("and", 1)):
        if joint in words:
            place = words.index(joint)
            parts = (words[:place], words[place + 1 :])
            assert (says(parts[0]) == says(parts[1])) == (joint == "and")
            return says(parts[main])
    return says(words)


def test_labels_follow_the_rule() -> None:
    for row in examples("pocket-sentiment", "train", 2000):
        assert judge(row["text"]) == bool(row["label"]), row["text"]


def test_praise_and_negation_say_nothing_alone() -> None:
    seen: Counter[tuple[str, int]] = Counter()
    for row in examples("pocket-sentiment", "train", 6000):
        words = set(row["text"].split())
        seen["praise", row["label"]] += bool(words & GOOD)
        seen["not", row["label"]] += bool(words & {"not", "never", "hardly"})
    for name in ("praise", "not"):
        assert abs(seen[name, 0] / seen[name, 1] - 1) < 0.1
