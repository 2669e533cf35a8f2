from __future__ import annotations

import builtins
from typing import Any

import pytest

from headcount.base.errors import MissingExtraError
from headcount.tasks import bleu


def test_bleu_signature_and_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "tok:13a" in bleu.signature()
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("sacrebleu"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"pip install 'headcount\[mt\]'"):
        bleu.corpus_bleu(["a"], ["a"])


def test_spaced_full_stops_are_no_reason_to_warn(caplog: pytest.LogCaptureFixture) -> None:
    texts = ["a b c d ."] * 200
    assert bleu.corpus_bleu(texts, texts) == pytest.approx(100)
    assert not caplog.records
