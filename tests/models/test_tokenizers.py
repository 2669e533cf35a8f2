"""What damaged tokenizers raise when they are used is tested in tests/tasks/test_tokenizing.py."""

from __future__ import annotations

import json
import os

import pytest

from fuzz.readers import tokenizer_files
from headcount.base.errors import NotFoundError, UsageError
from headcount.exports.inputs import find_tokenizer
from headcount.models import tokenizers
from headcount.models.tokenizers import has_tokenizer, open_tokenizer
from headcount.tasks.loading import load_tokenizer


@pytest.fixture
def folder(tmp_path):
    for name, data in tokenizer_files().items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def test_a_tokenizer_is_opened(folder) -> None:
    assert has_tokenizer(folder)
    assert open_tokenizer(str(folder)).tokenize("cats") == ["cat", "##s"]


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.txt", "added_tokens.json", "a.model"])
def test_a_huge_file_is_refused_before_it_is_read(folder, name, monkeypatch) -> None:
    with (folder / name).open("a+b") as file:
        file.truncate(tokenizers.LARGEST + 1)  # of no size on the disk
    never = "transformers.AutoTokenizer.from_pretrained"
    monkeypatch.setattr(never, lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(UsageError, match=f"{name} is no file of a tokenizer: .*134,217,728 bytes"):
        open_tokenizer(str(folder))
    with pytest.raises(NotFoundError, match=r"No tokenizer in .* more than 134,217,728 bytes"):
        load_tokenizer(folder)
    assert find_tokenizer(folder) is None


def test_a_panic_in_rust_is_one_sentence_and_nothing_on_stderr(folder, capfd, monkeypatch) -> None:
    monkeypatch.setenv("RUST_BACKTRACE", "1")
    file = folder / "tokenizer.json"
    written = json.loads(file.read_text())
    written["post_processor"]["special_tokens"].pop("[SEP]")
    file.write_text(json.dumps(written))
    with pytest.raises(NotFoundError, match="The tokenizer fails"):
        load_tokenizer(folder)
    assert capfd.readouterr().err == ""


def test_what_others_say_meanwhile_is_not_lost(capfd) -> None:
    with tokenizers.tokenizing(), tokenizers.tokenizing():  # as two threads would
        os.write(2, b"a line\nthread of thought\n")
    assert capfd.readouterr().err == "a line\nthread of thought\n"
