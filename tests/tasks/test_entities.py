"""Entities by hand, and as seqeval counts them."""

from __future__ import annotations

import numpy as np
import pytest

from headcount.tasks.entities import entities, entity_counts, f1_of_counts, is_entity, word_counts
from headcount.tasks.metrics import Outcome, score

# (tags, what seqeval 1.2.2's get_entities gives)
CASES = [
    ("B-a I-a O B-b", {("a", 0, 1), ("b", 3, 3)}),
    ("I-a I-a", {("a", 0, 1)}),
    ("B-a B-a", {("a", 0, 0), ("a", 1, 1)}),
    ("B-a I-b", {("a", 0, 0), ("b", 1, 1)}),
    ("O I-a O I-a", {("a", 1, 1), ("a", 3, 3)}),
    ("S-a E-a B-a E-a", {("a", 0, 0), ("a", 1, 1), ("a", 2, 3)}),
    ("O O", set()),
    ("B-x-y I-x-y", {("x-y", 0, 1)}),
]


@pytest.mark.parametrize(("tags", "right"), CASES)
def test_entities(tags: str, right: set[tuple[str, int, int]]) -> None:
    assert entities(tags.split(" ")) == right


def test_f1_by_hand() -> None:
    """Of 3 labelled and 3 predicted entities 1 is right: a wrong end or type is wrong."""
    said, right = ["B-a I-a O", "B-a O B-b"], ["B-a I-a O", "B-a I-a B-a"]
    counts = entity_counts(said, right)
    assert counts.tolist() == [[1, 1, 1], [0, 2, 2]]
    assert f1_of_counts(counts.sum(0)[None])[0] == pytest.approx(1 / 3)
    assert score("entity_f1", Outcome(said, right), bootstrap=0).value == pytest.approx(1 / 3)
    assert word_counts(said, right).tolist() == [[3, 3], [1, 3]]
    assert score("token_accuracy", Outcome(said, right), bootstrap=0).value == pytest.approx(4 / 6)


def test_no_entity_to_find_is_undefined() -> None:
    assert np.isnan(score("entity_f1", Outcome(["B-a"], ["O"]), bootstrap=0).value)
    assert [is_entity(tag) for tag in ("B-a", "I", "O", "NOUN", "(other)", "")] == [
        True, True, False, False, False, False,
    ]  # fmt: skip
