"""BLEU by sacrebleu, its signature, and the sums it is made of (for the bootstrap)."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from headcount.base.errors import need_extra


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """sacrebleu's corpus BLEU, 0 to 100, with its defaults (13a tokens, mixed case)."""
    # force: a text with a space before its full stop is no mistake to warn of on every score
    bleu = _sacrebleu().BLEU(force=True)
    return float(bleu.corpus_score(list(hypotheses), [list(references)]).score)


def signature() -> str:
    """What sacrebleu's score depends on, in its own short form."""
    bleu = _sacrebleu().BLEU()
    bleu.corpus_score(["a"], [["a"]])  # the number of references is known only after a score
    return str(bleu.get_signature())


def sentence_counts(hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """(row, 10) lengths of hypothesis and reference, matching and all n-grams of 1 to 4 words."""
    bleu = _sacrebleu().BLEU(effective_order=True)
    rows = np.empty((len(hypotheses), 10))
    for row, (hypothesis, reference) in enumerate(zip(hypotheses, references, strict=True)):
        score = bleu.sentence_score(hypothesis, [reference])
        rows[row] = [score.sys_len, score.ref_len, *score.counts, *score.totals]
    return rows


def from_counts(sums: np.ndarray) -> np.ndarray:
    """BLEU of summed counts (resample, 10) -> (resample,), smoothed as sacrebleu does ("exp")."""
    length, reference, counts, totals = sums[:, 0], sums[:, 1], sums[:, 2:6], sums[:, 6:10]
    zero = (counts == 0) & (totals > 0)
    halved = 0.5 ** np.cumsum(zero, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(zero, halved / totals, counts / totals)
        brevity = np.where(length < reference, np.exp(1 - reference / length), 1.0)
        score = 100 * brevity * np.exp(np.log(precision).mean(1))
    return np.where((length > 0) & (totals > 0).all(1) & (counts > 0).any(1), score, 0.0)


def _sacrebleu() -> ModuleType:
    try:
        from sacrebleu import metrics
    except ImportError:
        raise need_extra("sacrebleu", "mt") from None
    return metrics
