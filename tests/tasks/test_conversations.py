"""Conversations: the tokens are those of the tokenizer's own chat template, wherever rows are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset

import headcount as hc
from headcount.base.errors import UsageError
from headcount.models.fingerprint import tokenizer_fingerprint
from headcount.runs.overlap import given_keys, keys_of
from headcount.runs.subject import read_texts
from headcount.tasks import open_task
from headcount.tasks.as_rows import are_rows, as_rows
from headcount.tasks.calibration import InputOptions
from headcount.tasks.conversations import calibration_texts
from headcount.tasks.inputs import read_inputs
from headcount.tasks.rows import rows_of
from models.conftest import build
from tasks.kinds.test_causal_lm import byte_tokenizer, loop

CHAT = (
    "{{ bos_token }}{% for message in messages %}[{{ message['role'] }}] "
    "{{ message['content'] | trim }}\n{% endfor %}"
)
TALKS = [
    [
        {"role": "user", "content": f"Where is number {n}? " + "please " * (n % 4)},
        {"role": "assistant", "content": f"There, beside {n + 1}, weit fort; 雪。"},
    ]
    for n in range(8)
]


def talker(*, bos: bool = False) -> Any:
    tokenizer = byte_tokenizer(bos=bos)
    tokenizer.chat_template = CHAT
    return tokenizer


def templated(tokenizer: Any, talks: list[Any] = TALKS) -> list[list[int]]:
    return [tokenizer.apply_chat_template(talk)["input_ids"] for talk in talks]


def small(tokenizer: Any) -> Any:
    return build("gpt2", vocab_size=len(tokenizer), bos_token_id=0, eos_token_id=0, n_positions=512)


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "chat.jsonl", [{"messages": talk, "id": 1} for talk in TALKS])


@pytest.mark.parametrize("bos", [False, True])
def test_rows_of_a_task_are_what_the_chat_template_gives(bos: bool, file: Path) -> None:
    tokenizer = talker(bos=bos)  # whose own first token must not come twice
    task = open_task("causal-lm", data=file)
    rows = rows_of(small(tokenizer), task, tokenizer, "all", max_length=512)[1]
    assert rows.columns["input_ids"] == rows.labels == templated(tokenizer)
    short = rows_of(small(tokenizer), task, tokenizer, "all", max_length=20)[1]
    assert short.columns["input_ids"] == [ids[:20] for ids in templated(tokenizer)]


@pytest.mark.parametrize("bos", [False, True])
@pytest.mark.parametrize("stride", [None, 7])
def test_windows_are_those_of_each_conversation(
    bos: bool, stride: int | None, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokenizer = talker(bos=bos)
    if not bos:
        tokenizer.chat_template = CHAT.replace("{{ bos_token }}", "")
    model = small(tokenizer)
    task = open_task("causal-lm", train=file, dev=file, window=24, stride=stride)
    found = hc.evaluate(model, task, tokenizer=tokenizer)
    assert "as many tokens as --max-length" not in caplog.text  # it is read to its end
    sums = []
    for ids in templated(tokenizer):
        windows = loop(model, ids[bos:], bos=0 if bos else None, window=24, stride=stride or 24)
        sums.append(windows.sum(0))
    nats, tokens = np.array(sums).T
    # an example is a conversation, not one of its windows
    np.testing.assert_allclose(found.predictions["nll"], nats, rtol=1e-5)
    assert found.predictions["tokens"].tolist() == tokens.tolist()
    perplexity, bits = found.scores
    assert perplexity.value == pytest.approx(np.exp(nats.sum() / tokens.sum()), rel=1e-5)
    if bos:  # every byte of the texts behind the first token is scored
        texts = [tokenizer.decode(ids[1:]) for ids in templated(tokenizer)]
        size = sum(len(text.encode()) for text in texts)
        assert bits.value == pytest.approx(nats.sum() / np.log(2) / size, rel=1e-5)


def test_a_sample_counts_conversations(file: Path) -> None:
    tokenizer = talker()
    task = open_task("causal-lm", train=file, dev=file, window=24)
    examples, rows = rows_of(small(tokenizer), task, tokenizer, limit=3)
    assert len(examples) == rows.count == 3 < len(rows)


def test_conversations_are_data_in_every_form(file: Path, tmp_path: Path) -> None:
    tokenizer = talker()
    model, expected = small(tokenizer), templated(tokenizer)
    forms: dict[str, Any] = {
        "rows": [{"messages": talk} for talk in TALKS],
        "lists": TALKS,
        "data set": Dataset.from_dict({"messages": TALKS, "prompt": ["x"] * len(TALKS)}),
        "columns": {"messages": TALKS},
        "task": open_task("causal-lm", train=file, dev=file),
    }
    for name, data in forms.items():
        rows: Any = as_rows(model, data, tokenizer=tokenizer, labels=False, max_length=512)
        assert rows.columns["input_ids"] == expected, name
    assert not are_rows(forms["rows"])
    assert not are_rows(forms["lists"])
    assert read_texts(file, model, tokenizer, 512).columns["input_ids"] == expected
    rows = read_inputs(model, tokenizer, InputOptions(rows=file, max_length=512))[0]
    assert rows.columns["input_ids"] == expected
    parquet = tmp_path / "chat.parquet"
    Dataset.from_dict({"talk": TALKS}).to_parquet(parquet)
    task = open_task("causal-lm", train=parquet, dev=parquet, columns="talk")
    assert task.load().texts[0] == forms["task"].load().texts[0]


def test_rows_in_memory_are_those_of_their_file(file: Path) -> None:
    opened = open_task("causal-lm", data=file, window=32)
    for rows in ([{"messages": talk} for talk in TALKS], Dataset.from_dict({"messages": TALKS})):
        task = hc.task(rows, kind="causal-lm", window=32)
        assert task.chat
        assert task.splits == opened.splits
        assert task.load("dev").texts[0] == opened.load("dev").texts[0]
    both = hc.task(
        {"train": [{"talk": TALKS[0]}], "dev": [{"talk": TALKS[1]}]},
        kind="causal-lm",
        columns="talk",
    )
    assert json.loads(str(both.load("dev").texts[0][0])) == TALKS[1]


def test_methods_and_repairs_read_conversations(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokenizer = talker()
    model = small(tokenizer)
    ids = [{"input_ids": ids[:128]} for ids in templated(tokenizer)]
    how = {"ratio": 0.5, "tokenizer": tokenizer}
    one = hc.select(model, "surgeon", inputs=[{"messages": talk} for talk in TALKS], **how)
    assert one == hc.select(model, "surgeon", inputs=ids, **how)
    task = open_task("causal-lm", train=file, dev=file)
    assert hc.select(model, "importance", data=task, **how) == hc.select(
        model, "importance", data=[row | {"labels": row["input_ids"]} for row in ids], **how
    )
    first, second = (hc.remove(model, one) for _ in range(2))
    hc.recover(first, model, TALKS, tokenizer=tokenizer)
    hc.recover(second, model, ids, tokenizer=tokenizer)
    for name, value in first.state_dict().items():
        torch.testing.assert_close(value, second.state_dict()[name])
    hc.prune(
        model, "surgeon", ratio=0.5, task=task, tokenizer=tokenizer,
        calibration=hc.Calibration(rows=file), repair=(hc.Recover(),), baseline=0,
    )  # fmt: skip
    assert "8 of 8 held-out rows are also calibration rows" in caplog.text


def test_what_was_given_is_known_in_the_task(file: Path) -> None:
    rows = [{"messages": talk} for talk in TALKS]
    keys = keys_of(open_task("causal-lm", train=file, dev=file).load())
    assert given_keys(calibration_texts(file)) == given_keys(rows) == given_keys(TALKS) == keys


def test_today_is_always_the_same_day() -> None:
    tokenizer = talker()
    tokenizer.chat_template = "{{ strftime_now('%d %B %Y') }}" + CHAT
    rows: Any = as_rows(None, TALKS[:1], tokenizer=tokenizer)
    assert tokenizer.decode(rows.columns["input_ids"][0]).startswith("26 July 2024")


def test_another_chat_template_is_another_tokenizer() -> None:
    first, second = talker(), talker()
    assert tokenizer_fingerprint(first) == tokenizer_fingerprint(second)
    second.chat_template += " "
    assert tokenizer_fingerprint(first) != tokenizer_fingerprint(second)


def test_conversations_that_cannot_be_written_are_refused(file: Path, tmp_path: Path) -> None:
    plain = byte_tokenizer(bos=False)
    with pytest.raises(UsageError, match=r"no chat template .* put the chat_template.jinja"):
        rows_of(small(plain), open_task("causal-lm", data=file), plain)
    with pytest.raises(UsageError, match="no chat template"):
        read_texts(file, small(plain), plain, 64)
    plain.chat_template = "{{ raise_exception('Roles must alternate.') }}"
    with pytest.raises(UsageError, match=r"cannot write conversation 1: Roles must alternate\.$"):
        as_rows(None, TALKS, tokenizer=plain)
    for row, said in (
        ({"messages": []}, "is no conversation"),
        ({"messages": "Hello"}, "is no conversation"),
        ({"messages": [{"content": "a"}]}, "has a message without a role"),
        ({"messages": ["a"]}, "has a message without a role"),
        ({"messages": [{"role": "user", "content": None}]}, "has a message without a content"),
        ({"messages": [{"role": "user", "content": 3}]}, "has a message without a content"),
    ):
        path = write(tmp_path / "bad.jsonl", [{"messages": TALKS[0]}, row])
        with pytest.raises(UsageError, match=f"Row 2 of '.*bad.jsonl' {said}"):
            open_task("causal-lm", dev=path).load()
        with pytest.raises(UsageError, match=f"line 2 {said}"):
            read_texts(path, small(plain), talker(), 64)
    path = write(tmp_path / "mixed.jsonl", [{"messages": TALKS[0]}, {"text": "a"}])
    with pytest.raises(UsageError, match="no header line with messages"):
        open_task("causal-lm", dev=path)
    with pytest.raises(UsageError, match="line 2 has no conversation in 'messages'"):
        read_texts(path, small(plain), talker(), 64)


def test_tables_are_not_read_as_if_they_were_text(file: Path, tmp_path: Path) -> None:
    texts = write(tmp_path / "texts.jsonl", [{"text": "a b"}, {"text": "c d"}])
    with pytest.raises(UsageError, match=r"conversations in 'messages': pass --columns COLUMN"):
        open_task("causal-lm", data=texts)
    for kind in ("masked-lm", "embedding"):
        with pytest.raises(UsageError, match=f"task '{kind}' has texts: pass --columns COLUMN"):
            open_task(kind, data=file)
        with pytest.raises(UsageError, match="line 1 has a list in 'messages', and a text"):
            open_task(kind, data=file, columns="messages")
