"""Embeddings as sentence-transformers makes them, and modules that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoTokenizer

import headcount as hc
from headcount.base.errors import HeadcountError, UsageError
from headcount.models.model_options import POOLINGS
from headcount.models.sentences import pool, sentence_modules, set_pooling
from headcount.models.shipped import locate
from headcount.tasks.encoding import encode_texts
from models.sentence_folders import POOLING, sentence_folder, write

TEXTS = ["the small king", "a cat", "the queen near the big dog with a baker", "young", "the dog"]


@pytest.fixture(scope="module")
def words() -> Any:
    return AutoTokenizer.from_pretrained(locate("pocket-bert"))


def embedded(folder: Path, tokenizer: Any) -> torch.Tensor:
    model = hc.load(folder)
    ((numbers, batch),) = encode_texts(TEXTS, tokenizer).batches()
    with torch.no_grad():
        hidden = model(**batch).last_hidden_state
    found = torch.empty(len(TEXTS), 0)
    vectors = sentence_modules(model).embed(hidden, batch["attention_mask"])
    found = torch.empty_like(vectors)
    found[torch.from_numpy(numbers)] = vectors
    return found


@pytest.mark.parametrize(
    ("modes", "dense", "normalize"),
    [*(((mode,), 0, False) for mode in POOLING), (("cls", "mean"), 7, True), (("mean",), 5, False)],
)
def test_embeddings_are_those_of_sentence_transformers(
    tmp_path: Path, words: Any, modes: tuple[str, ...], dense: int, normalize: bool
) -> None:
    folder = sentence_folder(tmp_path / "model", words, *modes, dense=dense, normalize=normalize)
    there = SentenceTransformer(str(folder), device="cpu")
    want = there.encode(TEXTS, convert_to_tensor=True, show_progress_bar=False)
    found = embedded(folder, words)
    assert found.shape == (5, dense or 32 * len(modes))
    torch.testing.assert_close(found, want.clone(), rtol=1e-4, atol=1e-5)


def test_newer_folders_name_their_pooling(tmp_path: Path, words: Any) -> None:
    folder = sentence_folder(tmp_path / "model", words, "mean")
    config = {"embedding_dimension": 32, "pooling_mode": ["mean", "lasttoken"]}
    write(folder / "1_Pooling" / "config.json", config)
    there = SentenceTransformer(str(folder), device="cpu")
    want = there.encode(TEXTS, convert_to_tensor=True, show_progress_bar=False)
    torch.testing.assert_close(embedded(folder, words), want.clone(), rtol=1e-4, atol=1e-5)


def test_padding_before_the_tokens_does_not_count() -> None:
    hidden = torch.randn(3, 4, 2)
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1]])
    pairs = zip(hidden, mask, strict=True)
    left = torch.stack([row.roll(int(4 - keep.sum()), 0) for row, keep in pairs])
    for mode in POOLING:
        torch.testing.assert_close(pool(left, mask.flip(1), mode), pool(hidden, mask, mode))


def test_a_bare_model_has_the_mean_or_what_is_asked_for(tmp_path: Path, words: Any) -> None:
    folder = sentence_folder(tmp_path / "model", words)
    model = hc.load(folder)
    assert sentence_modules(model).modes == ("mean",)
    for name, mode in POOLINGS.items():
        set_pooling(model, name)
        assert sentence_modules(model).modes == (mode,)
    with pytest.raises(UsageError, match="Did you mean 'mean'"):
        set_pooling(model, "means")


def test_a_folder_with_modules_has_said_its_pooling(tmp_path: Path, words: Any) -> None:
    model = hc.load(sentence_folder(tmp_path / "model", words, "cls"))
    set_pooling(model, "cls")
    with pytest.raises(UsageError, match=r"--pooling max is for bare models: .* says cls\."):
        set_pooling(model, "max")


def test_what_is_pruned_keeps_its_pooling(tmp_path: Path, words: Any) -> None:
    model = hc.load(sentence_folder(tmp_path / "model", words))
    set_pooling(model, "last")
    hc.remove(model, "22").save_pretrained(tmp_path / "small")
    small = hc.load(tmp_path / "small")
    assert sentence_modules(small).modes == ("lasttoken",)
    listed = json.loads((tmp_path / "small" / "modules.json").read_text())
    assert [part["type"].rpartition(".")[2] for part in listed] == [
        "Transformer", "Pooling", "Normalize",
    ]  # fmt: skip


BAD: dict[str, tuple[str, Any, str]] = {
    "no list": ("modules.json", {"a": 1}, "is no list of modules"),
    "no objects": ("modules.json", [1], "is no list of modules"),
    "no pooling": (
        "modules.json", [{"type": "a.Transformer", "path": ""}], "has no Pooling",
    ),
    "other module": (
        "modules.json",
        [{"type": "a.Transformer", "path": ""}, {"type": "a.LSTM", "path": "1_LSTM"}],
        "has the module 'LSTM' at 1, and headcount reads a Transformer",
    ),
    "outside": (
        "modules.json", [{"type": "a.Pooling", "path": "../../other"}], "outside of its own",
    ),
    "no name of a folder": (
        "modules.json", [{"type": "a.Pooling", "path": "1_\0Pooling"}], "outside of its own",
    ),
    "config no object": ("1_Pooling/config.json", [1], "is no config of a module"),
    "unknown mode": (
        "1_Pooling/config.json", {"pooling_mode": "median"}, "pools by 'median', and headcount",
    ),
    "mode no text": ("1_Pooling/config.json", {"pooling_mode": [[1]]}, "pools by"),
    "activation": (
        "2_Dense/config.json", {"activation_function": "os.system"}, "the activation 'system'",
    ),
    "damaged weights": ("2_Dense/model.safetensors", {"a": 1}, "no weights of a Dense module"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_modules_that_cannot_be_read(tmp_path: Path, words: Any, name: str) -> None:
    file, content, message = BAD[name]
    folder = sentence_folder(tmp_path / "model", words, "mean", dense=3)
    write(folder / file, content)
    with pytest.raises(HeadcountError, match=message):
        sentence_modules(hc.load(folder))


def test_dense_weights_that_are_pickled_or_of_another_size(tmp_path: Path, words: Any) -> None:
    folder = sentence_folder(tmp_path / "model", words, "mean", dense=3)
    config = {"pooling_mode": ["mean", "cls"]}
    write(folder / "1_Pooling" / "config.json", config)
    with pytest.raises(UsageError, match="takes vectors of 32 numbers, not 64"):
        embedded(folder, words)
    (folder / "2_Dense" / "model.safetensors").rename(folder / "2_Dense" / "pytorch_model.bin")
    write(folder / "modules.json", json.loads((folder / "modules.json").read_text()))
    with pytest.raises(HeadcountError, match="pickled weights of a Dense module are not read"):
        sentence_modules(hc.load(folder))
