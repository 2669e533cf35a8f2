from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from headcount.base.errors import UsageError
from headcount.models.batches import ModelBatch
from headcount.tasks import Examples, Task, open_task
from headcount.tasks.encoding import RowOptions
from headcount.tasks.kinds.causal_lm import CausalLM
from headcount.training.evaluate import evaluate
from headcount.training.scoring import Scoring
from models.conftest import build

KIND = CausalLM()


def test_every_token_but_the_first_is_asked_for() -> None:
    logits, labels = torch.zeros(2, 3, 4), torch.tensor([[0, 1, 2], [0, 1, 2]])
    logits[0, 1, 2] = logits[1, 0, 1] = 9.0
    scores = KIND.read(logits, ModelBatch({}, labels))
    assert scores[:, 2].tolist() == [2, 2]
    assert scores[:, 0].tolist() == [1, 1]
    assert KIND.counts(labels).sum() == 4


def test_a_word_drawn_at_a_token_is_a_label_of_the_next() -> None:
    logits = torch.zeros(1, 3, 4)
    logits[0, torch.arange(3), torch.tensor([3, 1, 2])] = 60.0
    drawn = KIND.sample_labels(logits, ModelBatch({}, None), torch.Generator().manual_seed(0))
    assert drawn[0, 1:].tolist() == [3, 1]
    assert KIND.losses(logits, ModelBatch({}, drawn)).sum() < 1e-6


def test_lines_are_rows_or_blocks_of_one_stream(tokenizer: Any) -> None:
    examples = Examples((["the cat sees the dog", "a king"],))
    lines = KIND.encode(examples, tokenizer, RowOptions(length=16))
    assert len(lines) == 2
    assert lines.labels == lines.columns["input_ids"]
    blocks = KIND.encode(examples, tokenizer, RowOptions(length=4, packed=True))
    assert {len(block) for block in blocks.columns["input_ids"][:-1]} == {4}
    with pytest.raises(UsageError, match="too short"):
        KIND.encode(Examples(([""],)), tokenizer, RowOptions(length=4, packed=True))


TEXT = "Der Bär läuft.\n\nÜber Brücken — weit, weit fort; 雪が降る。\n" * 3


def byte_tokenizer(*, bos: bool) -> Any:
    """A token for every byte, so that some letters are several tokens."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(["<s>", *letters])}
    plain = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    if bos:
        plain.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", 0)]
        )
    return PreTrainedTokenizerFast(tokenizer_object=plain, bos_token="<s>", pad_token="<s>")


def loop(model: Any, ids: list[int], *, bos: int | None, window: int, stride: int) -> Any:
    """(nats, tokens) of every window, one forward pass each, as in transformers' guide."""
    size = window - (bos is not None)
    sums, begin, done = [], 0, 0
    while done < len(ids):
        end = min(begin + size, len(ids))
        inputs = torch.tensor([([] if bos is None else [bos]) + ids[begin:end]])
        with torch.no_grad():
            chances = model(inputs).logits[0].double().log_softmax(-1)
        nats, tokens = 0.0, 0
        for token in range(done, end):
            position = token - begin + (bos is not None)
            if position:
                nats -= chances[position - 1, ids[token]].item()
                tokens += 1
        sums += [(nats, tokens)] if tokens else []
        begin, done = begin + min(stride, size), end
    return np.array(sums)


@pytest.mark.parametrize("bos", [False, True])
@pytest.mark.parametrize("stride", [None, 16, 5, 1])
def test_windows_are_those_of_a_plain_loop(bos: bool, stride: int | None, tmp_path: Path) -> None:
    tokenizer = byte_tokenizer(bos=bos)
    model = build("gpt2", vocab_size=len(tokenizer), bos_token_id=0, eos_token_id=0)
    (tmp_path / "dev.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "train.txt").write_text("anderes\n", encoding="utf-8")
    task = open_task("causal-lm", data=tmp_path, window=16, stride=stride)
    found = evaluate(model, task, tokenizer=tokenizer, scoring=Scoring(bootstrap=0))
    text = TEXT.removesuffix("\n")
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert len(ids) == len(text.encode())
    sums = loop(model, ids, bos=0 if bos else None, window=16, stride=stride or 16)
    np.testing.assert_allclose(found.predictions["nll"], sums[:, 0], rtol=1e-5)
    assert found.predictions["tokens"].tolist() == sums[:, 1].tolist()
    nats, tokens = sums.sum(0)
    perplexity, bits = found.scores
    assert perplexity.value == pytest.approx(np.exp(nats / tokens), rel=1e-5)
    # the bytes of a letter are those of its last token
    assert sum(found.predictions["bytes"]) == pytest.approx(tokens, abs=3 * len(sums))
    if bos:
        assert tokens == sum(found.predictions["bytes"]) == len(text.encode())
        assert bits.value == pytest.approx(nats / np.log(2) / len(text.encode()), rel=1e-5)


def test_windows_are_scored_as_lm_eval_rolls_over_a_text() -> None:
    """Its windows are given the token before them, and the first one the token of the beginning."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    tokenizer = byte_tokenizer(bos=False)
    model = build("gpt2", vocab_size=len(tokenizer), bos_token_id=0, eos_token_id=0)
    text = "the cat sees the dog near a king, " * 3 + "and"
    assert len(tokenizer(text).input_ids) == 7 * 15
    task = Task(
        name="text", kind="causal-lm", texts=("text",), metrics=("perplexity",), packed=True,
        loader=lambda split: Examples(([f"<s>{text}"],)), window=16, stride=15,
    )  # fmt: skip
    found = evaluate(model, task, tokenizer=tokenizer, scoring=Scoring(bootstrap=0))
    harness: Any = HFLM
    writer = harness(pretrained=model, tokenizer=tokenizer, batch_size=2, max_length=15)
    (theirs,) = writer.loglikelihood_rolling([Instance("loglikelihood_rolling", {}, (text,), 0)])
    assert found.predictions["tokens"].tolist() == [15] * 7
    assert found.scores[0].value == pytest.approx(np.exp(-theirs / 105), rel=1e-5)


def test_labels_of_windows_are_the_tokens_that_no_window_has_had() -> None:
    rows = KIND.encode(
        Examples((["abcdefgh"],)),
        byte_tokenizer(bos=False),
        RowOptions(length=4, stride=2, packed=True),
    )
    a = rows.columns["input_ids"][0][0]
    assert rows.columns["input_ids"] == [[a + n for n in range(b, b + 4)] for b in (0, 2, 4)]
    assert isinstance(rows.labels, list)
    assert [row[:2] for row in rows.labels] == [[a, a + 1], [-100, -100], [-100, -100]]
    assert [row[2:] for row in rows.labels] == [[a + b, a + b + 1] for b in (2, 4, 6)]


def test_a_beginning_in_the_text_is_not_added_again() -> None:
    tokenizer, options = byte_tokenizer(bos=True), RowOptions(length=4, stride=4, packed=True)
    plain, written = (
        KIND.encode(Examples(([text],)), tokenizer, options) for text in ("abcdef", "<s>abcdef")
    )
    assert written.columns["input_ids"] == plain.columns["input_ids"]
    assert written.labels == plain.labels


def test_a_last_token_alone_is_no_window() -> None:
    rows = KIND.encode(
        Examples((["abcde"],)),
        byte_tokenizer(bos=False),
        RowOptions(length=4, stride=4, packed=True),
    )
    assert len(rows) == 1
    with pytest.raises(UsageError, match="too short"):
        KIND.encode(
            Examples((["a"],)),
            byte_tokenizer(bos=False),
            RowOptions(length=4, stride=4, packed=True),
        )


def test_windows_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    tokenizer = byte_tokenizer(bos=False)
    model = build("gpt2", vocab_size=len(tokenizer), bos_token_id=0, eos_token_id=0)
    (tmp_path / "dev.txt").write_text(TEXT)
    task = open_task("causal-lm", dev=tmp_path / "dev.txt", window=4096)
    with pytest.raises(UsageError, match="window of 4096 tokens does not fit into the model"):
        evaluate(model, task, tokenizer=tokenizer)
