"""The quantities that are measured for every head, in words; nothing here needs torch."""

from __future__ import annotations

from typing import NamedTuple


class QuantityWords(NamedTuple):
    """What a quantity is."""

    unit: str
    what: str


ROLES = {
    "previous": QuantityWords("share", "attention to the token before"),
    "next": QuantityWords("share", "attention to the token behind"),
    "same": QuantityWords("share", "attention to the token itself"),
    "first": QuantityWords(
        "share", "attention to the first token of the row, [CLS] or BOS where it is"
    ),
    "separator": QuantityWords(
        "share", "attention to special tokens behind the first, or punctuation"
    ),
    "duplicate": QuantityWords("share", "attention to other places that hold the same token"),
    "induction": QuantityWords(
        "share", "attention to the places behind earlier ones of the same token"
    ),
}
"""What may become a head's role: shares of its attention, each over the queries that have such a
key in sight."""
LOOKS = {
    **ROLES,
    "reach": QuantityWords("tokens", "mean distance between a token and what it looks at"),
    "entropy": QuantityWords("bits", "entropy of the attention"),
    "entropy_share": QuantityWords(
        "share", "entropy by that of equal attention to all keys in sight"
    ),
}
"""All that comes from attention alone."""
QUANTITIES = {
    **LOOKS,
    "stand_in": QuantityWords(
        "share", "of the head's output, what the others of its layer reproduce"
    ),
    "kilobytes": QuantityWords("kB", "weights that go with the head; 1 kB is 1000 bytes"),
    "milliseconds": QuantityWords("ms", "what the head adds to a forward pass"),
    "cost_alone": QuantityWords("loss", "change of the loss when this head alone is closed"),
    "cost_alone_repaired": QuantityWords(
        "loss", "the same with its layer's output projection re-solved"
    ),
    "score_alone": QuantityWords("score", "change of the score when this head alone is closed"),
    "score_alone_repaired": QuantityWords(
        "score", "the same with its layer's projection re-solved"
    ),
}
"""Everything a head can be described by."""
LETTERS = {
    "previous": "P",
    "next": "N",
    "same": "S",
    "first": "F",
    "separator": "E",
    "duplicate": "D",
    "induction": "I",
}
"""Roles in a grid of heads."""
CLEAR = 0.25
"""How far from chance to all attention a score is at least, for a role."""
