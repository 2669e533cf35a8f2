from __future__ import annotations

import os

import pytest

from headcount.base.errors import HeadcountError


def test_a_folder_that_cannot_be_written_leaves_nothing_behind(tmp_path, pruned):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(HeadcountError, match="Cannot write to"):
        pruned[0].save_pretrained(blocked / "model")
    with pytest.raises(HeadcountError, match="Cannot write to"):
        pruned[0].save_pretrained(blocked)
    assert blocked.read_text() == "in the way"
    assert sorted(os.listdir(tmp_path)) == ["file", "small"]


def test_a_save_that_fails_half_way_leaves_the_old_folder_whole(tmp_path, pruned, monkeypatch):
    small, folder = pruned
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    monkeypatch.setattr(
        "headcount.models.pruned.write_card",
        lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")),
    )
    with pytest.raises(HeadcountError, match="No space left on device"):
        small.save_pretrained(folder)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert os.listdir(tmp_path) == ["small"]


def test_weights_can_be_read_by_whoever_may_read_the_rest(tmp_path, pruned, odd_rights):
    pruned[0].save_pretrained(tmp_path / "again")
    assert odd_rights(tmp_path / "again") == {}
