"""Tables of sounds with their texts, and every way they can be wrong."""

from __future__ import annotations

import pytest

from headcount.base.errors import NotFoundError, UsageError
from headcount.tasks import open_task
from tasks.sounds import WORDS, tone, wav, write_speech

KIND = "speech-recognition"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_speech(tmp_path_factory.mktemp("speech") / "data")


def test_a_folder_of_two_tables(folder):
    task = open_task(KIND, data=folder)
    assert (task.splits, task.metrics) == (("train", "dev"), ("wer", "cer"))
    assert task.normalizer == "plain"
    dev = task.load("dev")
    assert len(dev) == 6
    assert {*dev.texts[1]} == {*WORDS}
    for path, text in zip(dev.files, dev.texts[1], strict=True):
        assert path.is_file()
        assert text in path.name


def test_one_table_is_split_and_columns_may_have_other_names(folder, tmp_path):
    lines = (folder / "train.csv").read_text().replace("audio,text", "path,words")
    (tmp_path / "clips").symlink_to(folder / "clips")
    (tmp_path / "all.csv").write_text(lines)
    task = open_task(KIND, data=tmp_path / "all.csv", columns="path", label="words")
    assert task.splits == ("train", "dev", "all")
    assert len(task.load("all")) == 12
    other = open_task(KIND, data=folder).load("train")
    assert sorted(task.load("all").texts[0]) == sorted(other.texts[0])  # known by their content


@pytest.mark.parametrize(
    ("lines", "error", "message"),
    [
        ("audio,text\nnone.wav,a\n", NotFoundError, "row 1: there is no file '.*none.wav'"),
        ("audio,text\na.wav,low\n,high\n", NotFoundError, "row 2: there is no file"),
        ("audio,text\na.wav,low\na.wav, \n", UsageError, "row 2: the text ' ' has no word"),
        ("audio,text\na.wav,...\n", UsageError, "row 1: the text '...' has no word"),
        ("audio,words\na.wav,low\n", NotFoundError, "no column"),
    ],
)
def test_a_wrong_table_is_one_sentence(tmp_path, lines, error, message):
    (tmp_path / "a.wav").write_bytes(wav(tone("low")))
    (tmp_path / "t.csv").write_text(lines)
    with pytest.raises((error, UsageError), match=message) as raised:
        open_task(KIND, data=tmp_path / "t.csv")
    assert "\n" not in str(raised.value)


def test_what_is_missing_and_what_is_too_much(folder):
    with pytest.raises(UsageError, match="needs tables of WAV files"):
        open_task(KIND)
    with pytest.raises(UsageError, match="one column of files"):
        open_task(KIND, data=folder, columns=("a", "b"))
    with pytest.raises(UsageError, match="normalizer"):
        open_task(KIND, data=folder, normalizer="dutch")
    with pytest.raises(UsageError, match="leave out --normalizer"):
        open_task("pocket-sentiment", normalizer="plain")
