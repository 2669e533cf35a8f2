"""Fewer and fewer heads, scored again after every step: for methods whose scores grow stale."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from headcount.base.errors import UsageError
from headcount.heads import Layout, Mask, Scores
from headcount.heads.choose import keep_best
from headcount.pruning.methods import Decision


class GreedyPath:
    """Masks of fewer and fewer heads, with the scores of the heads that each still has.

    Scores do not depend on the number of heads asked for, so all ratios share them.
    """

    def __init__(self, layout: Layout, measure: Callable[[Mask], Scores], step: int) -> None:
        self.layout = layout
        self.measure = measure
        """The scores of the heads of a mask, none of them negative; others are not looked at."""
        self.step = max(1, step)
        """Heads that go between two measurements."""
        self.states: list[tuple[Mask, Scores]] = []

    def keep(self, count: int) -> Decision:
        """So many heads, from the last scores before that number."""
        for step in itertools.count():
            if step == len(self.states):
                mask = self._smaller(*self.states[-1]) if step else Mask.full(self.layout)
                before = self.states[-1][1] if step else None
                self.states.append((mask, self._scores(mask, before)))
            mask, scores = self.states[step]
            if len(mask) - self.step <= count:
                return Decision.best(scores, count)
        raise AssertionError  # the last state has no heads

    def _scores(self, mask: Mask, before: Scores | None) -> Scores:
        """What is gone stays gone, below all others and in the order in which it went."""
        scores = self.measure(mask)
        if before is not None:
            gone = (-1 - 1 / (1 + value) if value >= 0 else value - 1 for value in before.values)
            pairs = zip(scores.items(), gone, strict=True)
            values = (value if head in mask else old for (head, value), old in pairs)
            scores = Scores(self.layout, tuple(values))
        return scores

    def _smaller(self, mask: Mask, scores: Scores) -> Mask:
        """A step's heads fewer, or a few more where heads share keys and values."""
        for count in range(len(mask) - self.step, -1, -1):
            try:
                return keep_best(scores, count)
            except UsageError:
                continue
        return Mask.none(mask.layout)
