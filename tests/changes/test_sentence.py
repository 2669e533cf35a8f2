from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, ResNetConfig, ResNetModel

from headcount.base.errors import UnsupportedError, UsageError
from headcount.changes.maps import HeadUse
from headcount.changes.sentence import attention
from headcount.heads import Head, Mask
from headcount.models.capture import AttentionSource, collect
from headcount.models.find import layout
from headcount.models.gates import gate
from headcount.models.remove import remove
from headcount.models.shipped import locate
from models.zoo import build, masks
from training.conftest import tiny, tokenizer

__all__ = ["tokenizer"]
TEXT = "the king near a cat"


def small_of(model: Any, pattern: str = "uneven") -> tuple[Any, Mask]:
    mask = masks(layout(model))[pattern]
    return remove(model, mask), mask


def test_maps_are_those_the_model_computes(tokenizer: Any) -> None:
    model = tiny(tokenizer)
    small, mask = small_of(model)
    found = attention(model, TEXT, pruned=small, tokenizer=tokenizer)
    inputs = tokenizer([TEXT], return_tensors="pt")
    full = collect(model, dict(inputs))
    with gate(model, mask):  # the masked model says what is left of every head
        masked = collect(model, dict(inputs))
    assert found.after is not None
    assert {run.head for run in found.after} == mask.kept
    assert list(found.before) == [HeadUse(head) for head in layout(model)]
    for (head, _), values in found.before.items():
        place = AttentionSource(head.stack, head.layer, 0)
        np.testing.assert_allclose(values, full[place][0, head.index], atol=1e-6)
        if head in mask:
            after = found.after[HeadUse(head)]
            np.testing.assert_allclose(after, masked[place][0, head.index], atol=1e-5)
    assert found.tokens["encoder"].queries == ("[CLS]", *TEXT.split(), "[SEP]")
    assert found.mask == mask
    assert found.cut == 0


def test_heads_of_a_pruned_model_that_is_cut_again(tokenizer: Any) -> None:
    model = tiny(tokenizer)
    half = remove(model, Mask.full(layout(model)).drop([Head("encoder", 0, 0)]))
    less = remove(half, Mask.full(layout(half)).drop([Head("encoder", 0, 1)]))
    found = attention(half, TEXT, pruned=less, tokenizer=tokenizer)
    assert found.mask is not None
    assert found.mask.dropped == (Head("encoder", 0, 1),)  # by the numbers of the first of the two
    other = attention(model, TEXT, pruned=less, tokenizer=tokenizer)
    assert other.mask is not None
    assert other.mask.dropped == (Head("encoder", 0, 0), Head("encoder", 0, 2))


@pytest.mark.parametrize("family", ["llama", "bloom", "albert", "bert-decoder-cross"])
def test_other_models_of_one_stack(family: str, tokenizer: Any) -> None:
    model = build(family, vocab_size=len(tokenizer))
    small, mask = small_of(model, "whole groups")
    found = attention(model, TEXT, pruned=small, tokenizer=tokenizer)
    assert found.after is not None
    uses = 2 if family == "albert" else 1
    (stack,) = found.tokens
    assert len(found.before) == 16
    assert {run.run for run in found.before} == set(range(uses))
    assert len(found.after) == uses * sum(head.stack == stack for head in mask)
    if stack == "decoder":
        assert all((values[0, 1:] == 0).all() for values in found.before.values())


@pytest.mark.parametrize("family", ["bart", "t5"])
def test_all_three_stacks(family: str, tokenizer: Any) -> None:
    model = build(family, vocab_size=len(tokenizer), pad_token_id=0)
    small, _ = small_of(model)
    found = attention(model, TEXT, pruned=small, target="a cat", tokenizer=tokenizer)
    assert list(found.tokens) == ["encoder", "cross", "decoder"]
    source, told = 7, 4  # [CLS] and [SEP] around; the decoder starts with one token and lacks one
    for run, values in found.before.items():
        sizes = {"encoder": (source, source), "cross": (told, source), "decoder": (told, told)}
        assert values.shape == sizes[run.head.stack]
    assert found.tokens["cross"].queries[-2:] == ("a", "cat")
    assert found.tokens["cross"].keys[1:6] == tuple(TEXT.split())


def test_the_translator_writes_its_own_target() -> None:
    from headcount.models.load import load

    model: Any = load("pocket-translator")
    words = AutoTokenizer.from_pretrained(locate("pocket-translator"))
    text = "the dog sees this small cat ."
    found = attention(model, text, tokenizer=words)
    written = model.generate(**words([text], return_tensors="pt"), num_beams=1, do_sample=False)
    assert found.target == words.decode(written[0], skip_special_tokens=True)
    assert found.tokens["decoder"].queries[1:] == tuple(found.target.split())


def test_a_text_that_is_cut_says_so(tokenizer: Any) -> None:
    found = attention(tiny(tokenizer), TEXT, tokenizer=tokenizer, max_length=4)
    assert found.cut == 3
    assert found.tokens["encoder"].keys == ("[CLS]", "the", "king", "[SEP]")
    long = attention(tiny(tokenizer), "cat " * 80, tokenizer=tokenizer)
    assert (len(long.tokens["encoder"].keys), long.cut) == (64, 18)  # all positions there are


def test_two_texts_in_one_row(tokenizer: Any) -> None:
    found = attention(tiny(tokenizer), "a cat", pair="a dog", tokenizer=tokenizer)
    assert found.tokens["encoder"].keys == ("[CLS]", "a", "cat", "[SEP]", "a", "dog", "[SEP]")


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_text(text: str, tokenizer: Any) -> None:
    with pytest.raises(UsageError, match="text is empty"):
        attention(tiny(tokenizer), text, tokenizer=tokenizer)
    with pytest.raises(UsageError, match="target is empty"):
        attention(tiny(tokenizer), TEXT, target=text, tokenizer=tokenizer)


def test_a_model_that_is_no_cut_of_the_other(tokenizer: Any) -> None:
    model = tiny(tokenizer)
    for other, said in (
        (tiny(tokenizer, num_hidden_layers=2), "not the first with heads removed"),
        (tiny(tokenizer, num_attention_heads=8), "not the first with heads removed"),
        (tiny(tokenizer, hidden_size=64), "different widths"),
        (build("gpt2", vocab_size=len(tokenizer), bos_token_id=1, eos_token_id=2), "'gpt2'"),
    ):
        with pytest.raises(UsageError, match=said):
            attention(model, TEXT, pruned=other, tokenizer=tokenizer)
    small, _ = small_of(model)
    with pytest.raises(UsageError, match=r"head encoder\.0\.0, which the first has not"):
        attention(small, TEXT, pruned=model, tokenizer=tokenizer)


def test_models_that_have_nothing_to_show(tokenizer: Any) -> None:
    none = ResNetModel(ResNetConfig(embedding_size=8, hidden_sizes=[8], depths=[1]))
    with pytest.raises(UnsupportedError, match="no attention heads in ResNetModel"):
        attention(none, TEXT, tokenizer=tokenizer)
    for family in ("vit", "clip"):
        with pytest.raises(UnsupportedError, match="reads no text"):
            attention(build(family), TEXT, tokenizer=tokenizer)
    with pytest.raises(UsageError, match="leave out the target"):
        attention(tiny(tokenizer), TEXT, target="a cat", tokenizer=tokenizer)
    bart = build("bart", vocab_size=len(tokenizer), pad_token_id=0).model
    with pytest.raises(UsageError, match="writes no text itself: pass the target"):
        attention(bart, TEXT, tokenizer=tokenizer)


def test_attention_that_is_no_number(tokenizer: Any) -> None:
    model = tiny(tokenizer)
    with torch.no_grad():
        model.bert.encoder.layer[1].attention.self.query.weight[0] = float("nan")
    with pytest.raises(UsageError, match=r"head encoder\.1\.0 is not all numbers"):
        attention(model, TEXT, tokenizer=tokenizer)
