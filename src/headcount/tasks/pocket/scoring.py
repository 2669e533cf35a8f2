"""The pocket tasks' metrics, by name."""

from __future__ import annotations

from typing import Any

import numpy as np


def score(metric: str, truth: np.ndarray, found: np.ndarray) -> float:
    """`found` against `truth`: classes, or real numbers for Spearman's correlation.

    >>> score("accuracy", np.array([0, 1]), np.array([0, 0]))
    0.5
    """
    from scipy.stats import spearmanr
    from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

    if metric == "spearman":
        # Constant predictions have no ranks: they are worth as much as guessing.
        if np.ptp(found) == 0:
            return 0.0
        result: Any = spearmanr(truth, found)
        return float(result.statistic)
    by_name = {"accuracy": accuracy_score, "f1": f1_score, "matthews": matthews_corrcoef}
    return float(by_name[metric](truth, found))
