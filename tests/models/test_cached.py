from __future__ import annotations

import pytest
import torch

from headcount.base.errors import UnsupportedError
from headcount.models.cached import STEPS, run_cached
from headcount.models.probe import probe_inputs, run
from models.zoo import build


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("family", ["llama", "gpt2", "opt", "t5", "bart", "whisper"])
def test_a_cache_gives_the_answers_of_all_at_once(family, static):
    model = build(family)
    inputs = probe_inputs(model)
    if not model.config.is_encoder_decoder:
        inputs.pop("attention_mask")
    whole = run(model, inputs)[0]
    stepwise = [t for t in run_cached(model, inputs, static=static) if t.shape[-1] == 61]
    assert len(stepwise) == 1 + STEPS
    torch.testing.assert_close(torch.cat(stepwise, dim=1), whole, rtol=1e-4, atol=1e-5)


def test_a_model_without_a_cache_says_so():
    for family in ("bert", "vit"):
        model = build(family)
        with pytest.raises((UnsupportedError, TypeError)):
            run_cached(model, probe_inputs(model))
