from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from headcount.base.errors import UsageError
from headcount.models.shipped import locate
from headcount.tasks import Examples, open_task
from headcount.tasks.encoding import (
    IGNORED,
    EncodedRows,
    encode,
    examples_fingerprint,
    plan_batches,
    rows_fingerprint,
)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(locate("pocket-bert"))


@given(st.lists(st.integers(1, 60), min_size=1, max_size=80), st.integers(1, 200))
def test_batches_hold_every_row_once_within_the_budget(lengths: list[int], tokens: int) -> None:
    plan = plan_batches(np.array(lengths), tokens)
    assert sorted(np.concatenate(plan).tolist()) == list(range(len(lengths)))
    for rows in plan:
        longest = max(lengths[i] for i in rows)
        assert len(rows) == 1 or len(rows) * longest <= tokens
    heads = [lengths[rows[0]] for rows in plan]
    assert heads == sorted(heads, reverse=True)


def test_pairs_and_labels_are_encoded_as_the_tokenizer_does(tokenizer: Any) -> None:
    task = open_task("pocket-paraphrase")
    examples = task.load(limit=20)
    rows = encode(task, examples, tokenizer)
    want = tokenizer(list(examples.texts[0]), list(examples.texts[1]))
    assert rows.columns["input_ids"] == want["input_ids"]
    assert rows.columns["token_type_ids"] == want["token_type_ids"]
    seen: dict[int, Any] = {}
    for numbers, batch in rows.batches(tokens=80):
        assert batch["input_ids"].numel() <= 80
        assert batch["labels"].tolist() == [examples.labels[i] for i in numbers]  # type: ignore[index]
        for place, number in enumerate(numbers):
            length = int(batch["attention_mask"][place].sum())
            seen[int(number)] = batch["input_ids"][place, :length].tolist()
            assert (batch["input_ids"][place, length:] == tokenizer.pad_token_id).all()
    assert [seen[i] for i in range(20)] == want["input_ids"]


def test_truncation_and_too_short_a_limit(tokenizer: Any) -> None:
    task = open_task("pocket-sentiment")
    assert encode(task, task.load(limit=20), tokenizer, max_length=6).lengths.max() == 6
    with pytest.raises(UsageError, match="At least 2 tokens"):
        encode(task, task.load(limit=2), tokenizer, max_length=1)


def test_masking_is_fixed_for_a_seed_and_spares_special_tokens(tokenizer: Any) -> None:
    task = open_task("pocket-corpus")
    examples = task.load(limit=200)
    plain = encode(task, examples, tokenizer, masked=False)
    assert plain.labels is None
    first, again, other = (encode(task, examples, tokenizer, seed=s) for s in (0, 0, 1))
    assert first.columns["input_ids"] == again.columns["input_ids"]
    assert first.columns["input_ids"] != other.columns["input_ids"]
    special = set(tokenizer.all_special_ids)
    asked = kept = masked = 0
    assert isinstance(first.labels, list)
    for ids, hidden, labels in zip(
        plain.columns["input_ids"], first.columns["input_ids"], first.labels, strict=True
    ):
        words = [token for token in ids if token not in special]
        assert sum(label != IGNORED for label in labels) == max(1, round(0.15 * len(words)))
        for token, now, label in zip(ids, hidden, labels, strict=True):
            if label == IGNORED:
                assert now == token
            else:
                assert label == token not in special
                asked, masked, kept = (
                    asked + 1,
                    masked + (now == tokenizer.mask_token_id),
                    kept + (now == token),
                )
    assert masked / asked == pytest.approx(0.8, abs=0.06)
    assert kept / asked == pytest.approx(0.1, abs=0.05)


def test_masking_a_row_does_not_depend_on_the_others(tokenizer: Any) -> None:
    task = open_task("pocket-corpus")
    examples = task.load(limit=10)
    whole = encode(task, examples, tokenizer)
    part = encode(task, examples.take(np.arange(3)), tokenizer)
    assert whole.columns["input_ids"][:3] == part.columns["input_ids"]


def test_a_tokenizer_without_a_mask_token_is_refused() -> None:
    other = AutoTokenizer.from_pretrained(locate("pocket-translator"))
    task = open_task("pocket-corpus")
    with pytest.raises(UsageError, match="no mask token"):
        encode(task, task.load(limit=2), other)


def test_causal_blocks_hold_all_tokens_in_order(tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "dev.txt").write_text("the dog is here .\nthe cat sees the dog .\n")
    task = open_task("causal-lm", data=tmp_path)
    rows = encode(task, task.load(), tokenizer, max_length=4)
    lines = tokenizer(list(task.load().texts[0]), add_special_tokens=False)["input_ids"]
    stream = [token for block in rows.columns["input_ids"] for token in block]
    assert stream == [t for line in lines for t in line][: len(stream)]
    assert rows.labels == rows.columns["input_ids"]
    (tmp_path / "dev.txt").write_text("dog\n")
    short = open_task("causal-lm", data=tmp_path).load()
    with pytest.raises(UsageError, match="too short"):
        encode(task, short, tokenizer)


def test_translation_labels_are_the_target_padded_with_ignored() -> None:
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-translator"))
    task = open_task("pocket-translation")
    examples = task.load(limit=6)
    rows = encode(task, examples, tokenizer)
    numbers, batch = next(rows.batches())
    for place, number in enumerate(numbers):
        labels = batch["labels"][place]
        want = tokenizer(text_target=examples.texts[1][number])["input_ids"]
        assert labels[labels != IGNORED].tolist() == want
    assert (batch["labels"] == IGNORED).any()


def test_left_padding(tokenizer: Any) -> None:
    task = open_task("pocket-sentiment")
    tokenizer.padding_side = "left"
    try:
        _, batch = next(encode(task, task.load(limit=8), tokenizer).batches())
    finally:
        tokenizer.padding_side = "right"
    assert (batch["input_ids"][:, -1] == tokenizer.sep_token_id).all()
    mask = batch["attention_mask"]
    assert (mask.sort(dim=1).values == mask).all()
    assert not mask.bool().all()
    assert batch["labels"].dtype == torch.long


def test_fingerprints_tell_rows_apart() -> None:
    rows = EncodedRows({"input_ids": [[1, 2], [3]]}, np.array([0, 1]), {"input_ids": 0})
    assert rows_fingerprint(rows).startswith("2 rows ")
    assert rows_fingerprint(rows) == rows_fingerprint(replace(rows))
    others = [
        replace(rows, columns={"input_ids": [[1], [2, 3]]}),
        replace(rows, columns={"token_type_ids": [[1, 2], [3]], "input_ids": [[1, 2], [3]]}),
        replace(rows, labels=np.array([1, 1])),
        replace(rows, labels=[[1, 2], [3]]),
        replace(rows, padding={"input_ids": 1}),
        replace(rows, left=True),
    ]
    assert len({rows_fingerprint(each) for each in [rows, *others]}) == 7
    texts = [
        Examples((["a", "b"],)),
        Examples((["a", "c"],)),
        Examples((["a", "b"],), np.array([0, 1])),
        Examples((["a", "b"],), np.array([0.0, 1.0])),
        Examples((["a", "b"], ["c", None])),
    ]
    assert len({examples_fingerprint(each) for each in texts}) == 5
