from __future__ import annotations

from pathlib import Path

import pytest

from headcount.base import plugins
from headcount.base.errors import NotFoundError, UsageError
from headcount.base.plugins import bytecode, code_digest, load_plugin, loaded_plugins, plugin_code
from headcount.base.registry import Registry

REGISTRY = Registry("thing")
SCRIPT = """
from dataclasses import dataclass
from tests.base.test_plugins import REGISTRY

@dataclass(frozen=True)
class Thing:
    size: "Size" = 1

Size = int
REGISTRY.add("{name}", Thing, "from a script")
"""


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_scripts", {})
    monkeypatch.setattr(REGISTRY, "_entries", {})


def test_a_script_is_executed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headcount.base.options import types_of

    script = tmp_path / "my plug-in.py"
    script.write_text(SCRIPT.format(name="mine"))
    load_plugin(script)
    monkeypatch.chdir(tmp_path)
    load_plugin("my plug-in.py")  # the same file
    assert loaded_plugins() == (str(script),)
    assert types_of(REGISTRY["mine"]) == {"size": int}


def test_what_is_wrong_with_a_script_is_one_sentence(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    with pytest.raises(NotFoundError, match=r"no plugin '.*mine.py': --plugin takes a Python file"):
        load_plugin(script)
    script.write_text("1 / 0\n")
    with pytest.raises(UsageError, match=r"mine.py cannot be used: ZeroDivisionError: division"):
        load_plugin(script)
    script.write_text(SCRIPT.format(name="mine") + 'REGISTRY.add("mine", int, "twice")')
    with pytest.raises(UsageError, match=r"cannot be used: The thing 'mine' is registered already"):
        load_plugin(script)
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(UsageError, match=r"notes.txt is no Python file"):
        load_plugin(tmp_path / "notes.txt")
    assert loaded_plugins() == ()


def test_results_depend_on_the_code_of_the_plugins_they_name(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT.format(name="mine"))
    load_plugin(script)
    REGISTRY.add("ours", "headcount.base.text:short", "headcount's own")
    run = {"method": {"name": "mine"}, "others": ["ours", 3, None]}
    code = plugin_code(run, [REGISTRY])
    assert list(code) == ["thing.mine.code"]
    assert plugin_code({"method": "ours"}, [REGISTRY]) == {}
    script.write_text(SCRIPT.format(name="mine") + "\n# edited")
    assert plugin_code(run, [REGISTRY]) != code


def test_code_that_has_no_file_counts_by_what_it_does() -> None:
    digests, names = [], {}
    for text in ("def f(x): return x + 1", "def f(x): return x + 1", "def f(x): return x + 2"):
        exec(text, names)
        digests.append(code_digest(names["f"]))
    assert digests[0] == digests[1] != digests[2]
    exec("def f(x): return [y for y in x]", names)
    assert "0x" not in bytecode(names["f"])  # no addresses, which differ in every process
    exec("class F:\n    def f(self): return 1", names)
    assert code_digest(names["F"]) not in digests
