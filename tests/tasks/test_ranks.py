from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from headcount.tasks.metrics import (
    Outcome,
    score,
)
from tasks.outcomes import outcome_for


def test_the_spearman_interval_agrees_with_drawing_and_sorting() -> None:
    predictions, labels = outcome_for("spearman", 200, 0)
    result = score("spearman", Outcome(predictions, labels), bootstrap=2000)
    rng = np.random.default_rng(9)
    rows = rng.integers(200, size=(2000, 200))
    slow = [spearmanr(predictions[r], labels[r]).statistic for r in rows]
    assert result.low == pytest.approx(np.quantile(slow, 0.025), abs=0.02)
    assert result.high == pytest.approx(np.quantile(slow, 0.975), abs=0.02)
