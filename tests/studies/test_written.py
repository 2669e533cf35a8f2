"""Study files as they are written: every mistake with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from headcount.base.errors import NotFoundError, UsageError
from headcount.studies.written import read_written


def write(folder: Path, text: str, name: str = "study.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_yaml_toml_and_json_say_the_same(tmp_path: Path):
    want = {"name": "a", "runs": {"x": {"seeds": [1, 2]}}}
    yaml = write(tmp_path, "name: a\nruns:\n  x:\n    seeds: [1, 2]\n")
    toml = write(tmp_path, 'name = "a"\n[runs.x]\nseeds = [1, 2]\n', "study.toml")
    json = write(tmp_path, '{"name": "a", "runs": {"x": {"seeds": [1, 2]}}}', "study.json")
    assert [read_written(path).data for path in (yaml, toml, json)] == [want] * 3


def test_everything_has_its_line(tmp_path: Path):
    found = read_written(
        write(tmp_path, "name: a\nruns:\n  x:\n    seeds:\n      - 1\n      - 2\n")
    )
    assert found.lines[("runs", "x", "seeds", "1")] == 6
    found.wrong(("runs", "x", "seeds", "1", "deeper"), "is wrong.")
    found.wrong(("name",), "is no name.")
    found.wrong(("name",), "is no name.")
    with pytest.raises(UsageError) as told:
        found.refuse()
    said = str(told.value)
    assert "has 2 mistakes. line 1: name: is no name. | line 6: runs.x.seeds.1.deeper: is" in said


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("name: [", "s.yaml", "is no YAML in line 1"),
        ("a: b: c", "s.yaml", "is no YAML in line 1"),
        ("- a\n- b", "s.yaml", "no names with values"),
        ("", "s.yaml", "no names with values"),
        ("b = 1\na = x", "s.toml", "is no TOML in line 2"),
        ("a: !!python/object:os.system {}", "s.yaml", "is no YAML"),
        ("a: 1\na: 2", "s.yaml", None),
    ],
)
def test_what_is_no_study_file_is_refused_with_its_line(tmp_path: Path, text, name, said):
    path = write(tmp_path, text, name)
    if said is None:
        found = read_written(path)
        with pytest.raises(UsageError, match="line 2: a: it is there twice"):
            found.refuse()
    else:
        with pytest.raises(UsageError, match=said):
            read_written(path)


def test_aliases_cannot_grow_without_end(tmp_path: Path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(UsageError, match="more than"):
        read_written(write(tmp_path, "\n".join(lines)))


def test_a_file_that_is_not_there_names_what_ships(tmp_path: Path):
    with pytest.raises(NotFoundError, match="Did you mean 'grid'"):
        read_written("gird")
    assert read_written("grid").path.name == "grid.yaml"
