from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import AutoTokenizer, ResNetConfig, ResNetModel

from headcount.base.errors import UnsupportedError, UsageError
from headcount.changes.maps import HeadUse, Picture
from headcount.changes.sentence import attention
from headcount.heads import Head, Mask
from headcount.models.capture import AttentionSource, collect
from headcount.models.find import layout
from headcount.models.gates import gate
from headcount.models.load import load
from headcount.models.patches import PatchGrid
from headcount.models.remove import remove
from headcount.models.shipped import locate
from models.zoo import build, masks
from tasks.media import write_images, write_vit
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


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seen")
    write_images(folder / "images", train=1, dev=1)
    write_vit(folder / "vit")
    return folder


def test_maps_of_an_image_are_those_the_model_computes(images: Path) -> None:
    model, file = load(images / "vit"), images / "images/dev/ring/0.png"
    small = remove(model, Mask.parse("21", layout(model)))
    found = attention(model, image=file, pruned=small)
    with Image.open(file) as opened:
        colours = np.asarray(opened)
    pixels = (colours.transpose(2, 0, 1).astype(np.float32) / 255 - 0.5) / 0.5
    inputs = {"pixel_values": torch.from_numpy(pixels)[None]}
    full = collect(model, inputs)
    for (head, _), values in found.before.items():
        wanted = full[AttentionSource(head.stack, head.layer, 0)][0, head.index]
        np.testing.assert_allclose(values, wanted, atol=1e-5)
    assert found.after is not None
    assert len(found.after) == 3
    assert found.tokens["encoder"].keys[:6] == ("[CLS]", "0,0", "0,1", "0,2", "0,3", "1,0")
    assert found.picture is not None
    np.testing.assert_array_equal(found.picture.pixels, colours)
    assert found.to_json()["picture"] == {"rows": 4, "columns": 4, "start": 1}
    assert found.text == "0.png"
    for row, values in zip(found.rows(), found.before.values(), strict=True):
        far = 0.0  # from every patch to every patch, in a straight line
        for query in range(16):
            for key in range(16):
                apart = np.hypot(query // 4 - key // 4, query % 4 - key % 4)
                far += values[1 + query, 1 + key] * apart / 16
        assert row["distance"] == pytest.approx(far, rel=1e-5)
        assert found.picture.over(values)[2, 3] == values[0, 1 + 2 * 4 + 3]


def test_a_picture_without_a_class_token_has_the_mean_of_its_patches() -> None:
    rng = np.random.default_rng(0)
    picture = Picture(pixels=np.zeros((4, 6, 3), np.uint8), grid=PatchGrid(2, 3, 0))
    values = rng.dirichlet(np.ones(6), 6).astype(np.float32)
    np.testing.assert_allclose(picture.over(values)[1, 2], values[:, 5].mean(), rtol=1e-6)
    assert picture.tokens == ("0,0", "0,1", "0,2", "1,0", "1,1", "1,2")
    registers = Picture(pixels=picture.pixels, grid=PatchGrid(1, 1, 3))
    assert registers.tokens == ("[CLS]", "[1]", "[2]", "0,0")


def test_images_that_cannot_be_looked_at(images: Path, tokenizer: Any, tmp_path: Path) -> None:
    model, file = load(images / "vit"), images / "images/dev/ring/0.png"
    with pytest.raises(UsageError, match="one text or one image"):
        attention(model)
    with pytest.raises(UsageError, match="one text or one image"):
        attention(model, TEXT, image=file)
    with pytest.raises(UnsupportedError, match="Of a model of images pass an image"):
        attention(model, TEXT)
    with pytest.raises(UnsupportedError, match="reads no images"):
        attention(tiny(tokenizer), image=file, tokenizer=tokenizer)
    (tmp_path / "x.png").write_bytes(b"x")
    with pytest.raises(UsageError, match="is no image that can be read"):
        attention(model, image=tmp_path / "x.png")
