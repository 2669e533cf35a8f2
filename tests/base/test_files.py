from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Literal

import pytest

from fuzz.damage import become
from headcount.base import files
from headcount.base.errors import HeadcountError, NotFoundError, UsageError
from headcount.base.files import (
    append_line,
    discard,
    expanded,
    locked,
    read_json,
    read_lines,
    read_text,
    require_fields,
    whole,
    whole_folder,
    write_json,
)


def test_a_file_that_fails_half_way_leaves_the_old_one(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail():
        with whole(path) as partial:
            assert partial.suffix == ".txt"
            partial.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with whole(path) as partial:
        partial.write_text("new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_takes_the_place_of_another_when_asked(tmp_path):
    for text in ("old", "new"):
        with whole_folder(tmp_path / "a", replace=True) as made:
            (made / text).write_text(text)
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "new"]


def test_what_is_written_has_the_rights_that_the_umask_leaves(tmp_path, odd_rights):
    private = {"mode": 0o600, "flags": os.O_WRONLY | os.O_CREAT}  # as safetensors writes
    with whole_folder(tmp_path / "top" / "a") as made:
        (made / "sub").mkdir()
        os.close(os.open(made / "sub" / "x", **private))
    with whole(tmp_path / "top" / "b") as partial:
        partial.unlink()
        os.close(os.open(partial, **private))
    assert odd_rights(tmp_path / "top") == {}


def test_a_folder_is_discarded_and_what_a_link_leads_to_stays(tmp_path):
    (tmp_path / "a" / "inside").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "b").symlink_to(tmp_path / "elsewhere")
    for name in ("a", "b", "nothing"):
        discard(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"]
    write_json(tmp_path / "c", 1)
    with pytest.raises(HeadcountError, match=r"Cannot delete .*x: Not a directory"):
        discard(tmp_path / "c" / "x")


def test_a_file_is_discarded_with_what_was_to_take_its_place(tmp_path):
    for name in ("state", ".state.999999.partial", ".state.9.partial.npz"):
        (tmp_path / name).write_text("x")
    discard(tmp_path / "state")
    assert [path.name for path in tmp_path.iterdir()] == [".state.9.partial.npz"]


def test_a_folder_appears_whole(tmp_path):
    path = tmp_path / "a" / "b"

    def fail():
        with whole_folder(path) as made:
            (made / "x").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list((tmp_path / "a").iterdir()) == []
    with whole_folder(path) as made:
        (made / "x").write_text("all")
    assert (path / "x").read_text() == "all"


def test_a_disk_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(HeadcountError, match=r"Cannot write .*: (Not a directory|File exists)\."):
        write_json(tmp_path / "file" / "a.json", {})
    with (
        pytest.raises(HeadcountError, match=r"Cannot write .*: (Not a directory|File exists)\."),
        whole_folder(tmp_path / "file" / "a"),
    ):
        pass
    with pytest.raises(HeadcountError, match="No space left on device"):
        append_line("/dev/full", {"a": 1})


def test_json_comes_back(tmp_path):
    write_json(tmp_path / "a.json", {"ö": [1, None]})
    assert read_json(tmp_path / "a.json", "record") == {"ö": [1, None]}


@pytest.mark.parametrize("text", [b"{", b"", b"\xff\xfe", b"[" * 100_000, b"{'a': 1}"])
def test_damaged_json_is_one_sentence(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_bytes(text)
    with pytest.raises(UsageError, match=r"a\.json is no record: "):
        read_json(path, "record")


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_file_is_called_so(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(UsageError, match=r"a\.json is no record: it is empty\.$"):
        read_json(tmp_path / "a.json", "record")


def test_a_missing_or_huge_file_is_one_sentence(tmp_path):
    with pytest.raises(NotFoundError, match="No such file"):
        read_json(tmp_path / "a.json", "record")
    (tmp_path / "a.json").write_text("1" * 100)
    with pytest.raises(UsageError, match="more than 99 bytes"):
        read_json(tmp_path / "a.json", "record", largest=99)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("pipe", "it is a pipe, not a file"), ("/dev/zero", "it is a device, not a file"),
        ("folder", "it is a folder, not a file"), ("nothing", "No such file"),
        ("loop", "Too many levels of symbolic links"),
    ],
)  # fmt: skip
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path, what, said):
    path = tmp_path / "a.json"
    become(path, what)
    for read in (read_json, read_text, read_lines):
        with pytest.raises(NotFoundError, match=rf"Cannot read the record .*a\.json: {said}"):
            read(path, "record")


def test_no_more_is_read_than_allowed_whatever_a_file_says_of_its_size(monkeypatch):
    path = Path("/proc/self/status")  # of 0 bytes, it says
    assert path.stat().st_size == 0
    assert read_text(path, "record").startswith("Name:")
    monkeypatch.setattr(files, "PIECE", 8)
    with pytest.raises(UsageError, match="status is no record: it has more than 99 bytes"):
        read_text(path, "record", 99)


@pytest.mark.parametrize("what", ["pipe", "/dev/null", "folder"])
def test_what_is_no_file_is_not_written_over(tmp_path, what):
    path = tmp_path / "a.json"
    become(path, what)
    before = os.lstat(path)
    with pytest.raises(HeadcountError, match=r"Cannot write .*a\.json: it is a "):
        write_json(path, {})
    assert os.path.samestat(os.lstat(path), before)


def test_a_line_cut_short_is_left_out_and_told(tmp_path):
    path = tmp_path / "a.jsonl"
    append_line(path, {"a": 1})
    append_line(path, {"a": 2})
    assert read_lines(path, "list of runs") == ([{"a": 1}, {"a": 2}], False)
    path.write_text(path.read_text()[:-4])
    assert read_lines(path, "list of runs") == ([{"a": 1}], True)
    path.write_text("nonsense\n" + path.read_text())
    with pytest.raises(UsageError, match="line 1"):
        read_lines(path, "list of runs")


def test_a_line_cut_within_a_letter_is_left_out_and_other_line_ends_are_text(tmp_path):
    path = tmp_path / "a.jsonl"
    append_line(path, {"a": "one\u2028line"})
    append_line(path, {"a": "é"})
    whole_file = path.read_bytes()
    assert read_lines(path, "list of runs") == ([{"a": "one\u2028line"}, {"a": "é"}], False)
    for end in range(len(whole_file) - 3, whole_file.index(b"\n"), -1):
        path.write_bytes(whole_file[:end])
        rows, cut = read_lines(path, "list of runs")
        assert rows == [{"a": "one\u2028line"}]
        assert cut == (end > whole_file.index(b"\n") + 1)
    path.write_bytes(whole_file[:-1])  # only the line's end is lost
    assert read_lines(path, "list of runs") == ([{"a": "one\u2028line"}, {"a": "é"}], False)


TYPES = {
    "name": str, "score": float, "count": int, "more": dict[str, Any] | None,
    "words": tuple[str, ...], "ratio": float | Literal["free"] | None,
}  # fmt: skip
OPTIONAL = ("more", "words", "ratio")


def test_a_row_that_fits_passes():
    require_fields({"name": "a", "score": 1, "count": 2}, TYPES, "?", OPTIONAL)
    whole_row = {"name": "a", "score": 1.5, "count": 2, "more": {}, "words": ["b"]} | {
        "ratio": "free"
    }
    assert require_fields(whole_row, TYPES, "?") is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"score": "1"}, "has a wrong 'score'"),
        ({"count": 1.0}, "has a wrong 'count'"),
        ({"count": True}, "has a wrong 'count'"),
        ({"count": 10**30}, "has a wrong 'count'"),
        ({"more": []}, "has a wrong 'more'"),
        ({"words": "b"}, "has a wrong 'words'"),
        ({"name": None}, "has a wrong 'name'"),
        ({"ratio": "most"}, "has a wrong 'ratio'"),
    ],
)
def test_a_row_of_something_else_is_one_sentence(changes, said):
    row = {"name": "a", "score": 1, "count": 2} | changes
    with pytest.raises(UsageError, match=f"runs, line 3: it {said}"):
        require_fields(row, TYPES, "runs, line 3", OPTIONAL)
    with pytest.raises(UsageError, match="it lacks 'score'"):
        require_fields({"name": "a", "count": 1}, TYPES, "runs", OPTIONAL)
    with pytest.raises(UsageError, match=r"\[1\] is no object"):
        require_fields([1], TYPES, "runs", OPTIONAL)


def test_a_second_process_is_refused_and_a_dead_one_leaves_no_lock(tmp_path):
    code = "import sys, time\nfrom headcount.base.files import locked\n"
    code += "with locked(sys.argv[1]):\n    print('held', flush=True)\n    time.sleep(60)"
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    refused = pytest.raises(UsageError, match=f"worked on by process {child.pid} on")
    with refused, locked(tmp_path):
        pass
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    for _ in range(100):
        try:
            with locked(tmp_path):
                break
        except UsageError:
            time.sleep(0.05)
    else:
        pytest.fail("the dead process still holds the folder")
    assert list(tmp_path.iterdir()) == []


def test_a_tilde_is_the_home_only_where_it_stands_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert expanded("~/x") == Path("/home/me/x")
    assert expanded("~") == Path("/home/me")
    assert expanded("./~x") == tmp_path / "~x"
    assert expanded(expanded("./~/x")) == tmp_path / "~" / "x"
    assert expanded(Path("~root")) == Path("~root")  # a name, as `./~root` is to a Path
    assert expanded("a/~/b") == Path("a/~/b")


def test_a_name_of_any_bytes_is_written_and_read(tmp_path: Path) -> None:
    name = os.fsdecode(b"m\xff\xe9 \xc3\xa9")
    files.write_json(tmp_path / "a.json", {"name": name})
    append_line(tmp_path / "a.jsonl", {"name": name})
    assert read_json(tmp_path / "a.json", "file") == {"name": name}
    assert read_lines(tmp_path / "a.jsonl", "file") == ([{"name": name}], False)
