from __future__ import annotations

from headcount.behaviour.patterns import SHARES
from headcount.behaviour.words import ATTENTION, LETTERS, QUANTITIES, ROLES


def test_every_role_has_a_letter_of_its_own() -> None:
    assert list(LETTERS) == list(ROLES)
    assert len(set(LETTERS.values())) == len(ROLES)


def test_the_order_is_that_of_the_numbers() -> None:
    assert tuple(ATTENTION) == (*SHARES, "entropy", "entropy_share")
    assert list(QUANTITIES)[: len(ATTENTION)] == list(ATTENTION)
