"""The quantities that are measured for every head, in words; nothing here needs torch."""

from __future__ import annotations

ROLES = {
    "previous": ("share", "attention to the token before"),
    "next": ("share", "attention to the token after"),
    "same": ("share", "attention to the token itself"),
    "first": ("share", "attention to the first token of the row, [CLS] or BOS where it is"),
    "separator": ("share", "attention to special tokens after the first, or punctuation"),
    "duplicate": ("share", "attention to other positions that hold the same token"),
    "induction": ("share", "attention to the positions after earlier ones of the same token"),
}
"""What may become a head's role, with its unit and what it is: shares of its attention, each over
the queries that see such a key."""
ATTENTION = {
    **ROLES,
    "reach": ("tokens", "mean distance between a token and what it attends to"),
    "entropy": ("bits", "entropy of the attention"),
    "entropy_share": ("share", "entropy by that of equal attention to all visible keys"),
}
"""All that comes from attention alone."""
PATCHES = {
    "previous": ("share", "attention to the patch to the left"),
    "next": ("share", "attention to the patch to the right"),
    "same": ("share", "attention to the patch itself"),
    "first": ("share", "attention to the class token, or without one to the first patch"),
    "separator": ("share", "attention to further tokens that are no patches"),
    "reach": (
        "patches",
        "mean distance, in two dimensions, between a patch and what it attends to; the class "
        "token counts 0",
    ),
}
"""The same where what is read is an image: what else there is of tokens, patches have none."""
QUANTITIES = {
    **ATTENTION,
    "replaceable": ("share", "of the head's output, what the others of its layer reproduce"),
    "kilobytes": ("kB", "weights that go with the head; 1 kB is 1000 bytes"),
    "milliseconds": ("ms", "what the head adds to a forward pass"),
    "cost_alone": ("loss", "change of the loss when this head alone is closed"),
    "cost_alone_repaired": ("loss", "the same with its layer's output projection re-solved"),
    "score_alone": ("score", "change of the score when this head alone is closed"),
    "score_alone_repaired": ("score", "the same with its layer's projection re-solved"),
}
"""Everything a head can be described by."""
LETTERS = dict(zip(ROLES, "PNSFEDI", strict=True))
"""Roles in a grid of heads."""
CLEAR = 0.25
"""How far from chance to all attention a score is at least, for a role."""
