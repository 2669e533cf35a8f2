"""Formats by name: a new one is a class and a line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exports.exporting import pruned
from headcount.base.errors import MissingExtraError
from headcount.exports.export import export
from headcount.exports.formats import FORMATS, ExportFormat, ReadBack


class Listing(ExportFormat):
    """The names of all weights."""

    library = "json"
    imports = "import json"
    loads = 'names = json.load(open("path/to/this/folder/names.json"))'

    def write(self, model, folder, probes):
        (folder / "names.json").write_text(json.dumps(sorted(model.state_dict())))
        return ReadBack(0.0)


@pytest.fixture
def listing(monkeypatch):
    monkeypatch.setattr(FORMATS, "_entries", dict(FORMATS._entries))
    FORMATS.add("listing", Listing, "the names of all weights")


def test_a_format_is_a_class_and_a_line(listing, tmp_path: Path):
    model = pruned("bert")
    done = export(model, "listing", tmp_path / "out")
    assert done.files == ("README.md", "names.json")
    assert json.loads((tmp_path / "out" / "names.json").read_text()) == sorted(model.state_dict())
    card = (tmp_path / "out" / "README.md").read_text()
    assert "library_name: json" in card
    assert "names = json.load" in card
    assert "the names of all weights" in card


def test_what_a_format_needs_is_asked_for_first(listing, monkeypatch, tmp_path: Path):
    monkeypatch.setattr(Listing, "extra", "onnx")
    monkeypatch.setattr("headcount.base.extras.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'headcount\[onnx\]'"):
        export(pruned("bert"), "listing", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", [entry.name for entry in FORMATS])
def test_every_format_says_how_it_is_loaded(name: str):
    assert issubclass(FORMATS[name], ExportFormat)
    assert FORMATS[name].__doc__
    assert "path/to/this/folder" in FORMATS[name].loads
