"""Roles by plain loops over one input's attention: what the fast way is held against."""

from __future__ import annotations

import math

import numpy as np

from headcount.behaviour.words import ATTENTION


def keys_of(name, i, ids, text, separators, keys=None):
    """The keys a role is about for query i of one text."""
    if keys is not None:  # cross-attention
        ids, separators = keys
        across = {"first": {0}, "separator": {j for j in range(1, len(ids)) if separators[j]}}
        return across.get(name, set())
    every = range(len(ids))
    return {
        "previous": {i - 1},
        "next": {i + 1},
        "same": {i},
        "first": {0} - {i},
        "separator": {j for j in every if separators[j] and j not in (0, i)},
        "duplicate": {j for j in every if ids[j] == ids[i] and text[j] and j != i},
        "induction": {j for j in range(1, i) if ids[j - 1] == ids[i] and text[j - 1]},
    }[name]


def by_hand(attention, ids, text, separators, sees, keys=None):
    """(value, chance) of every quantity for one head, (query, key), of one input.

    `sees(i, j)` says whether query i sees key j.
    """
    values = {name: [] for name in ATTENTION}
    chances = {name: [] for name in ATTENTION}
    for i in range(len(ids)):
        if not text[i]:
            continue
        visible = [j for j in range(attention.shape[1]) if sees(i, j)]
        for name in list(ATTENTION)[:7]:
            own = [j for j in keys_of(name, i, ids, text, separators, keys) if j in visible]
            if own:
                values[name].append(sum(attention[i, j] for j in own))
                chances[name].append(len(own) / len(visible))
        if keys is None:
            values["reach"].append(sum(attention[i, j] * abs(i - j) for j in visible))
            chances["reach"].append(np.mean([abs(i - j) for j in visible]))
        bits = -sum(p * math.log2(p) for p in attention[i] if p > 0)
        values["entropy"].append(bits)
        chances["entropy"].append(math.log2(len(visible)))
        if len(visible) > 1:
            values["entropy_share"].append(bits / math.log2(len(visible)))
            chances["entropy_share"].append(1.0)
    return tuple(
        np.array([np.mean(each[name]) if each[name] else np.nan for name in ATTENTION])
        for each in (values, chances)
    )
