"""What a search measures of every head for the page: the numbers of the commands, kept once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import headcount as hc
from headcount.base.errors import UnsupportedError
from headcount.studies.search import details
from headcount.studies.search.details import FOLDER
from headcount.views.page.gather import SubjectData, gather
from headcount.views.page.walk import walk
from studies.search.test_search import FAST, HOW, trained
from training.conftest import pets

__all__ = ["trained"]


@pytest.fixture(scope="module")
def ask(trained, tokenizer):
    def run(out: Path | None, **more) -> hc.SearchResult:
        return hc.search(trained, pets(), max_drop="10%", tokenizer=tokenizer, search_options=FAST,
                         out=out, **{**HOW, **more})  # fmt: skip

    return run


@pytest.fixture(scope="module")
def searched(ask, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("searched") / "s"
    ask(folder)
    return folder


@pytest.fixture
def folder(searched, tmp_path) -> Path:
    return Path(shutil.copytree(searched, tmp_path / "s"))


def read(path: Path) -> dict:
    return json.loads(path.read_text())


def page_of(folder: Path) -> SubjectData:
    (subject,) = gather(walk([folder])).subjects
    return subject


def test_importance_and_roles_are_those_of_the_library(searched, trained, tokenizer):
    samples = HOW["calibration"].samples
    scores = hc.importance(trained, pets(), tokenizer=tokenizer, samples=samples)
    told = read(searched / FOLDER / "importance.json")
    assert told["n"] == samples
    np.testing.assert_allclose(np.ravel(told["scores"]["encoder"]), scores.values, rtol=1e-6)
    assert told["rows"]["measured"]["split"] == "train"  # and none of those that are scored
    seen = read(searched / FOLDER / "roles.json")
    texts = set(pets().load("train").texts[0])
    tokens = {tuple(row["tokens"][1:-1]) for row in seen["examples"]}
    assert tokens <= {tuple(tokenizer.tokenize(text)) for text in texts}
    whole = hc.roles(trained, pets().load("train").texts[0], tokenizer=tokenizer)
    for name in ("entropy", "previous", "replaceable"):  # of a sample, so near those of all rows
        values = seen["quantities"][name]["values"]
        assert np.corrcoef(values, whole[name].values)[0, 1] > 0.9


def test_attention_is_that_of_both_models_on_a_row_of_the_train_split(searched, trained, tokenizer):
    told = read(searched / FOLDER / "attention" / "attention.json")
    assert told["text"] in set(pets().load("train").texts[0])
    small = hc.load(searched / "model")
    maps = hc.attention(trained, told["text"], pruned=small, tokenizer=tokenizer)
    with np.load(searched / FOLDER / "attention" / "attention.npz") as file:
        after = {name for name in file.files if name.startswith("after/")}
        for use, values in maps.before.items():
            kept = file[f"before/{use.head}/{use.run}"]
            np.testing.assert_allclose(kept, values, atol=1e-3)  # they are kept as float16
    assert len(after) == len(maps.after or {}) == read(searched / "search.json")["kept"]


def test_a_search_alone_fills_every_head_card(searched):
    page = page_of(searched)
    known = {each.key for each in page.quantities}
    assert {"importance", "replaceable", "entropy", "previous"} <= known
    for each in page.quantities:
        if each.key in ("importance", "entropy"):
            assert None not in each.values
    assert page.roles is not None
    assert {at for at, rows in page.roles.examples.items() if rows} == set(range(12))
    assert page.sentences


def test_what_is_there_is_not_measured_again_and_what_is_gone_is(ask, folder, monkeypatch):
    before = {path: path.stat().st_mtime_ns for path in (folder / FOLDER).rglob("*.json")}
    gone = folder / FOLDER / "roles.json"
    gone.unlink()
    said: list[str] = []
    ask(folder, report=said.append)
    assert said == ["measuring roles of every head, for the page"]
    after = {path: path.stat().st_mtime_ns for path in before}
    assert {path for path in before if before[path] != after[path]} == {gone}
    monkeypatch.setattr(details, "execute", None)  # nothing is executed
    ask(folder)


def test_a_file_that_was_cut_short_is_made_again(ask, folder):
    path = folder / FOLDER / "importance.json"
    whole = read(path)
    path.write_text(path.read_text()[:100])
    ask(folder)
    again = read(path)
    assert again["scores"] == whole["scores"]


def test_a_search_that_is_killed_while_it_measures_goes_on(ask, searched, tmp_path, monkeypatch):
    plain, made = details.execute, []

    def dying(run, context):
        made.append(run.kind)
        if run.kind == "roles":
            raise KeyboardInterrupt
        return plain(run, context)

    monkeypatch.setattr(details, "execute", dying)
    with pytest.raises(KeyboardInterrupt):
        ask(tmp_path / "s")
    assert made == ["importance", "roles"]
    assert read(tmp_path / "s" / "search.json")["kept"] == read(searched / "search.json")["kept"]
    monkeypatch.setattr(details, "execute", plain)
    ask(tmp_path / "s")
    assert (
        read(tmp_path / "s" / FOLDER / "roles.json")["roles"]
        == (read(searched / FOLDER / "roles.json")["roles"])
    )


def test_without_details_there_are_none_and_the_answer_is_the_same(ask, searched, tmp_path):
    ask(tmp_path / "s", details=False)
    assert not (tmp_path / "s" / FOLDER).exists()
    ours, theirs = read(tmp_path / "s" / "search.json"), read(searched / "search.json")
    assert (ours["id"], ours["mask"], ours["score"]) == (
        theirs["id"], theirs["mask"], theirs["score"],
    )  # fmt: skip
    assert {each.key for each in page_of(tmp_path / "s").quantities}.isdisjoint({"importance"})


def test_overwrite_deletes_them_too(ask, folder):
    ask(folder, details=False, overwrite=True)
    assert not (folder / FOLDER).exists()


def test_what_a_model_does_not_allow_is_noted_and_the_answer_stays(ask, tmp_path, monkeypatch):
    def refuse(run, context):
        raise UnsupportedError("Roles are about tokens.")

    monkeypatch.setattr(details, "execute", refuse)
    notes: list[str] = []
    answer = ask(tmp_path / "s", note=notes.append)
    assert answer.model is not None
    told = [note for note in notes if note.startswith("The page has no")]
    assert told == [
        f"The page has no {name} of the heads: Roles are about tokens."
        for name in ("importance", "roles")
    ]
    assert (tmp_path / "s" / FOLDER / "attention" / "attention.json").exists()
