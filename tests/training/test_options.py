from __future__ import annotations

import pytest

from headcount.base.errors import UsageError
from headcount.training.options import PRESETS, TrainOptions


def test_the_papers_defaults() -> None:
    options = TrainOptions()
    assert (options.epochs, options.batch_size, options.max_length) == (3.0, 32, 128)
    preset = PRESETS["translation"]
    assert (preset.beta1, preset.beta2, preset.epsilon) == (0.9, 0.997, 1e-9)
    assert preset.schedule == "inverse_sqrt"
    assert preset.warmup > 1


def test_all_mistakes_are_said_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        TrainOptions(
            epochs=0,
            steps=0,
            batch_size=0,
            accumulate=0,
            max_length=1,
            learning_rate=0,
            warmup=-1,
            clip=-1,
            label_smoothing=1,
            freeze=-1,
            log_every=0,
            save_every=0,
            save_minutes=-1,
            attention_dropout=1.0,
            hidden_dropout=-0.1,
        )
    text = str(caught.value)
    fine = {"schedule", "weight_decay", "beta1", "beta2", "epsilon", "precision", "seed"}
    fine |= {"gradient_checkpointing", "like_lengths"}
    for name in TrainOptions.__dataclass_fields__:
        assert (f"{name} must" in text) == (name not in fine)
