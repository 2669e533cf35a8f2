from __future__ import annotations

from headcount.models.model_options import ModelOptions


def test_by_default_nothing_is_trusted_and_nothing_converted():
    plain = ModelOptions()
    assert (plain.allow_pickle, plain.dtype, plain.device) == (False, None, "auto")
    assert plain == ModelOptions(tokenizer=None)
