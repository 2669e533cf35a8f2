from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fuzz.damage import become
from headcount.base.errors import NotFoundError
from headcount.models.config import load_config
from headcount.models.load import load
from headcount.models.shipped import NAMES, locate
from headcount.tasks.loading import load_tokenizer


@pytest.mark.parametrize("name", NAMES)
def test_shipped_names_lead_to_folders(name: str) -> None:
    assert (Path(locate(name)) / "tokenizer.json").is_file()


def test_the_short_name_is_the_bert() -> None:
    assert locate("pocket") == locate("pocket-bert")


def test_other_names_stay_as_they_are() -> None:
    assert locate("bert-base-uncased") == "bert-base-uncased"


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_model_folder_with_a_pipe_in_it_is_refused_and_not_waited_for(
    tmp_path: Path, file: str
) -> None:
    shutil.copytree(locate("pocket"), tmp_path / "model")
    become(tmp_path / "model" / file, "pipe")
    for open_it in (load, load_tokenizer):
        with pytest.raises(NotFoundError, match=f"{file}: it is a pipe, not a file"):
            open_it(tmp_path / "model")


def test_a_model_folder_of_the_users_wins_and_no_other_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = locate("pocket")
    (tmp_path / "pocket" / "runs").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert locate("pocket") == shipped
    (tmp_path / "pocket" / "config.json").write_text("{}")
    assert locate("pocket") == "pocket"


def test_a_misspelt_name_gets_a_hint() -> None:
    with pytest.raises(NotFoundError, match="Did you mean 'pocket-bert'"):
        load_config("poket-bert")
