"""A folder of a search is believed where its files are those of the question that is asked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from markdown_it import MarkdownIt

import headcount as hc
from headcount.base.errors import HeadcountError, UsageError
from headcount.base.header import require_header
from headcount.models.remove import make_own
from headcount.runs.cutting import PruningRun
from headcount.studies import study
from headcount.studies.search.answer_card import answer_card
from headcount.studies.search.estimate import SearchResult
from headcount.studies.search.kept import answer_section
from studies.search.test_answer_card import ANSWER
from studies.search.test_search import FAST, HOW, trained
from training.conftest import pets

__all__ = ["trained"]
ONE, OTHER = "10%", "60%"
NASTY = ANSWER | {"metric": "a|b <img src=x>", "task": "**x**\n# T", "model": "/m/<b>`x`|"}


@pytest.fixture(scope="module")
def ask(trained, tokenizer):
    """Ask for the fewest heads within a loss."""

    def run(out: Path | None, bound: str = ONE, **more) -> SearchResult:
        return hc.search(trained, pets(), max_drop=bound, tokenizer=tokenizer, search_options=FAST,
                         out=out, **{**HOW, **more})  # fmt: skip

    return run


@pytest.fixture(scope="module")
def searched(ask, tmp_path_factory) -> dict[str, Path]:
    """The folders of two searches, by their bounds."""
    root = tmp_path_factory.mktemp("searched")
    for name, bound in (("one", ONE), ("other", OTHER)):
        ask(root / name, bound)
    return {ONE: root / "one", OTHER: root / "other"}


@pytest.fixture
def folder(searched, tmp_path) -> Path:
    """A copy of the first search."""
    return Path(shutil.copytree(searched[ONE], tmp_path / "s"))


def read(path: Path) -> dict:
    return json.loads(path.read_text())


def steady(value):
    """A nest without what differs between any two searches."""
    if isinstance(value, dict):
        left = ("seconds", "out", "sum")
        return {name: steady(each) for name, each in value.items() if name not in left}
    if isinstance(value, list):
        return [steady(each) for each in value]
    return value


def answer(folder: Path) -> dict:
    return steady(read(folder / "search.json"))


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def first_run(folder: Path) -> Path:
    return sorted((folder / "runs").iterdir())[0]


def lose_settings(folder: Path, other: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(other, folder)
    (folder / "studies" / "search.json").unlink()


def lose_settings_under_way(folder: Path, other: Path) -> None:
    lose_settings(folder, other)
    (folder / "search.json").unlink()
    shutil.rmtree(folder / "model")


def lose_full_and_settings(folder: Path, other: Path) -> None:
    lose_settings(folder, other)
    (folder / "selection.json").unlink()


def take_answer(folder: Path, other: Path) -> None:
    shutil.copy(other / "search.json", folder / "search.json")


def take_model(folder: Path, other: Path) -> None:
    shutil.rmtree(folder / "model")
    shutil.copytree(other / "model", folder / "model")


def take_model_under_way(folder: Path, other: Path) -> None:
    (folder / "search.json").unlink()
    take_model(folder, other)


def change_weights(folder: Path, other: Path) -> None:
    path = folder / "model" / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def change_weights_under_way(folder: Path, other: Path) -> None:
    (folder / "search.json").unlink()
    change_weights(folder, other)


def take_record_of_model(folder: Path, other: Path) -> None:
    shutil.copy(other / "model" / "record.json", folder / "model" / "record.json")


def take_full(folder: Path, other: Path) -> None:
    (folder / "search.json").unlink()
    shutil.copy(other / "selection.json", folder / "selection.json")


def take_runs(folder: Path, other: Path) -> None:
    (folder / "search.json").unlink()
    for path in (folder / "runs").iterdir():
        shutil.rmtree(path)
        shutil.copytree(first_run(other), path)


def take_said(folder: Path, other: Path) -> None:
    (folder / "search.json").unlink()
    for path in (folder / "runs").iterdir():
        shutil.copy(first_run(other) / "predictions.json", path / "predictions.json")


def take_full_for_answer(folder: Path, other: Path) -> None:
    shutil.copy(folder / "selection.json", folder / "search.json")


def change_answer(folder: Path, other: Path) -> None:
    path = folder / "search.json"
    path.write_text(json.dumps(read(path) | {"score": 0.99}))


@pytest.mark.parametrize(
    ("exchange", "named"),
    [
        (lose_settings, "selection.json"),
        (lose_settings_under_way, "selection.json"),
        (lose_full_and_settings, "does not say what it was begun with"),
        (take_answer, "search.json"),
        (take_model, "model"),
        (take_model_under_way, "model"),
        (change_weights, "model"),
        (change_weights_under_way, "model"),
        (take_record_of_model, "model"),
        (take_full, "selection.json"),
        (take_runs, "predictions.json"),
        (take_said, "predictions.json"),
        (take_full_for_answer, "search.json"),
        (change_answer, "search.json"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_another_question_left_is_refused_by_its_name(
    ask, searched, folder, exchange, named, monkeypatch
):
    exchange(folder, searched[OTHER])
    before = contents(folder)
    with pytest.raises(UsageError) as error:
        ask(folder)
    assert str(folder) in str(error.value)
    assert named in str(error.value)
    assert "\n" not in str(error.value)
    assert contents(folder) == before
    if exchange is lose_full_and_settings:
        with pytest.raises(UsageError, match="nothing that this study wrote"):
            ask(folder, overwrite=True)
        return
    ask(folder, overwrite=True)
    assert answer(folder) == answer(searched[ONE])
    assert require_header(answer(folder), "search.json")["kind"] == "search"


def test_lost_settings_of_the_same_question_are_written_again(ask, searched, folder, monkeypatch):
    (folder / "studies" / "search.json").unlink()
    monkeypatch.setattr(PruningRun, "cut", lambda *_: pytest.fail("cut again"))
    ask(folder)
    one, other = contents(folder), contents(searched[ONE])
    plans = [json.loads(files.pop("studies/search.json")) for files in (one, other)]
    assert one == other
    assert plans[0] == plans[1] | {"runs": []}


def test_runs_of_another_question_are_left_alone(ask, searched, folder):
    for path in folder.iterdir():
        if path.name not in ("runs", "claims"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    ask(folder, OTHER)
    assert answer(folder) == answer(searched[OTHER])


def test_a_model_that_is_gone_is_made_again(ask, searched, folder):
    told: list[str] = []
    for empty in (False, True):
        shutil.rmtree(folder / "model")
        if empty:
            (folder / "model").mkdir()
        found = ask(folder, note=told.append)
        assert "model is gone" in " ".join(told)
        assert found.model is not None
        assert found.mask == hc.Mask.from_json(found.data["mask"])
        one, other = contents(folder), contents(searched[ONE])
        records = [steady(json.loads(each.pop("model/record.json"))) for each in (one, other)]
        assert one == other
        assert records[0] == records[1]
    told.clear()
    ask(folder, note=told.append)
    assert "nothing is computed again" in told[-1]


def test_the_model_card_has_the_answer_above_what_pruning_says(searched, tmp_path):
    folder, found = searched[ONE], answer_card(answer(searched[ONE]))
    hc.export(hc.load(folder / "model"), "standalone", tmp_path / "out")
    for place in (folder / "model", tmp_path / "out"):
        text = ModelCard.load(place / "README.md").content
        told = MarkdownIt().enable("table").render(text.partition("## What it cost")[2])
        assert told.index(f"<strong>{found.title}</strong>") < told.index("<th>")
        for tile in found.tiles:
            assert f"<th>{tile.label}</th>" in told
            assert f"<td><strong>{tile.value}</strong></td>" in told
            assert f"<td>{tile.detail}</td>" in told
        assert told.index(f"<p>{found.small_print}</p>") < told.index("Method <code>")


def test_names_in_an_answer_are_no_markup():
    told = MarkdownIt().enable("table").render(answer_section(answer_card(NASTY)))
    assert "<img" not in told
    assert "<th>a|b &lt;img src=x&gt;</th>" in told
    assert told.count("<th>") == 3


def test_a_model_that_cannot_be_made_alike_is_stated_anew(ask, folder, monkeypatch):
    shutil.rmtree(folder / "model")
    plain = PruningRun.cut

    def elsewhere(self, decision):
        small, done = plain(self, decision)
        make_own(small, self.subject.model)
        next(small.parameters()).data += 1e-4
        return small, done

    monkeypatch.setattr(PruningRun, "cut", elsewhere)
    told: list[str] = []
    then = read(folder / "search.json")
    found = ask(folder, note=told.append)
    assert "other weights" in " ".join(told)
    assert found.data["checkpoint"]["files"] != then["checkpoint"]["files"]
    assert read(folder / "search.json") == found.to_json()
    again = ask(folder, note=told.append)
    assert "nothing is computed again" in told[-1]
    assert again.to_json() == found.to_json()


def test_overwriting_that_is_killed_leaves_no_answer_to_another_question(
    ask, searched, folder, monkeypatch
):
    """Whatever was deleted or written last, the new question has its own answer."""
    plain = study.write_json

    def dying(path, data):
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "write_json", dying)
    with pytest.raises(KeyboardInterrupt):
        ask(folder, OTHER, overwrite=True)
    assert not (folder / "search.json").exists()

    def written(path, data):
        plain(path, data)
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "write_json", written)
    with pytest.raises(KeyboardInterrupt):
        ask(folder, OTHER, overwrite=True)
    monkeypatch.setattr(study, "write_json", plain)
    ask(folder, OTHER)
    assert answer(folder) == answer(searched[OTHER])


def become_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGE = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "list": lambda path: path.write_text("[]"),
    "object": lambda path: path.write_text("{}"),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "folder": become_folder,
}
FILES = ("search.json", "studies/search.json", "selection.json", "runs/*/record.json",
         "runs/*/predictions.json", "model/record.json", "model/config.json", "model/mask.json",
         "model/model.safetensors")  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("unfinished", [False, True], ids=["finished", "unfinished"])
@pytest.mark.parametrize("name", FILES)
def test_a_folder_of_another_shape_is_refused_or_gives_the_same_answer(
    ask, searched, folder, name, unfinished, damage
):
    if unfinished and name != "search.json":
        (folder / "search.json").unlink()
    for path in folder.glob(name):
        DAMAGE[damage](path)
    try:
        ask(folder)
        refusal = ""
    except HeadcountError as error:
        refusal = str(error)
    if refusal:
        assert "\n" not in refusal
        assert str(folder) in refusal
    else:
        assert answer(folder) == answer(searched[ONE])
