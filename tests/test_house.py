"""The rules of the house: which way imports point, what is lazy, and what is needed."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections import Counter
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "headcount"
ROOMS = [  # imports point down this list only
    "cli",
    "papers",
    "views",
    "studies",
    "runs",
    "behaviour",
    "changes",
    "learned",
    "repair",
    "training",
    "pruning",
    "sensitivity",
    "likeness",
    "tasks",
    "costs",
    "exports",
    "models",
]
FOUNDATION = ["heads", "statistics", "base"]


def level(module: str) -> int:
    """0 for cli, growing downwards; the foundation is below all rooms."""
    room = module.split(".")[1]
    return len(ROOMS) if room in FOUNDATION else ROOMS.index(room)


def imported(tree: ast.AST, module: str, package: bool) -> list[str]:
    """Every module a source text imports, inside functions too, as full names."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")[: None if package else -1]
                parents = parents[: len(parents) - node.level + 1]
                base = ".".join([*parents, *([node.module] if node.module else [])])
            found += [
                f"{base}.{alias.name}" if base == "headcount" else base for alias in node.names
            ]
    return found


def wrong(text: str, module: str, package: bool = False) -> list[str]:
    """The imports of `text`, the source of `module`, that do not point down."""
    top = module.split(".")[1]
    out = []
    for name in imported(ast.parse(text), module, package):
        if top == "views" and name.split(".")[0] == "torch":
            out.append(name)
        # The package's own face (`import headcount`, `__version__`) is lazy: it is left out.
        room = name.split(".")[1] if name.startswith("headcount.") else None
        if room in [*ROOMS, *FOUNDATION] and level(name) < level(module):
            out.append(name)
    return out


FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_down(path: Path) -> None:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    package = parts[-1] == "__init__"
    module = ".".join(parts[:-1] if package else parts)
    assert module.split(".")[1] in [*ROOMS, *FOUNDATION], f"{module} is in no room of the house"
    assert wrong(path.read_text(encoding="utf-8"), module, package) == []


INSIDE = ("models", "costs", "exports")
INSIDES = re.compile(r"register_forward|\.forward = |Conv1D")


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if path.relative_to(SOURCE).parts[0] not in INSIDE],
    ids=lambda path: str(path.relative_to(SOURCE)),
)
def test_a_models_inside_is_touched_in_three_rooms_only(path: Path) -> None:
    assert INSIDES.findall(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("module", "text", "bad"),
    [
        ("headcount.models.load", "from headcount.heads import Mask", []),
        ("headcount.models.load", "from headcount.models.find import layout", []),
        ("headcount.models.load", "from .find import layout", []),
        ("headcount.models.load", "from headcount.tasks import glue", ["headcount.tasks"]),
        ("headcount.models.load", "from headcount import cli", ["headcount.cli"]),
        ("headcount.models.load", "from ..cli import main", ["headcount.cli"]),
        ("headcount.models.load", "def f():\n  import headcount.views.a", ["headcount.views.a"]),
        ("headcount.cli.ls", "import headcount.models.load, torch", []),
        ("headcount.views.page", "def f():\n    import torch.nn", ["torch.nn"]),
        ("headcount.views.page", "from torch import nn", ["torch"]),
        ("headcount.views.page", "import torchless", []),
        ("headcount.studies.run", "from headcount.views import page", ["headcount.views"]),
        ("headcount.heads", "from headcount.base.errors import UsageError", []),
        ("headcount.heads", "from headcount.models import find", ["headcount.models"]),
        ("headcount.models.load", "from headcount import __version__", []),
    ],
)  # fmt: skip
def test_the_import_rule_sees_what_it_should(module: str, text: str, bad: list[str]) -> None:
    assert wrong(text, module) == bad


def in_a_fresh_python(code: str, *, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


HEAVY = "{'torch', 'transformers', 'datasets', 'numba', 'sklearn', 'pandas'}"
LIGHT = {
    "the names": "import headcount; headcount.Mask; headcount.HeadcountError; dir(headcount)",
    "--help": "from headcount.cli.main import main; assert main(['--help']) == 0",
    "--version": "assert main(['--version']) == 0",
    "a wrong command": "assert main(['lss']) == 2",
    "ls": "assert main(['ls']) == 0",
    "the help of every command": (
        "from headcount.cli.commands import COMMANDS\n"
        "for entry in COMMANDS: assert main([entry.name, '--help']) == 0, entry"
    ),
}
"""What needs nothing heavy, in this order in one process."""


@pytest.fixture(scope="module")
def heavy() -> dict[str, str]:
    """What was imported that is heavy after each of these; last, of torch, after all of cli."""
    names = [
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        for room in ("cli", "views")
        for path in (SOURCE / room).rglob("*.py")
    ]
    assert "headcount.cli.doctor" in names
    lines = ["import sys, importlib"]
    for name, code in LIGHT.items():
        lines += [code, f"print('\\nheavy:{name}:', {HEAVY} & set(sys.modules))"]
    lines += [f"for name in {names}: importlib.import_module(name)"]
    lines += ["print('\\nheavy:cli and views:', {'torch'} & set(sys.modules))"]
    out = in_a_fresh_python("\n".join(lines))
    found = (line.split(":", 2) for line in out.splitlines() if line.startswith("heavy:"))
    return {name: said.strip() for _, name, said in found}


@pytest.mark.parametrize("name", [*LIGHT, "cli and views"])
def test_nothing_heavy_is_imported_for(name: str, heavy: dict[str, str]) -> None:
    assert heavy[name] == "set()"


def test_public_names_are_offered() -> None:
    import headcount as hc
    from headcount.heads import Mask

    assert hc.Mask is Mask
    assert {"Mask", "remove", "__version__"} <= set(dir(hc))
    assert set(hc.__all__) == {"__version__", *hc._PUBLIC}
    for name in ["Head", "HeadcountError", "Layout", "Mask", "Scores"]:
        assert getattr(hc, name).__name__ == name


def test_every_public_name_can_be_had() -> None:
    import headcount as hc

    assert [name for name in hc._PUBLIC if not callable(getattr(hc, name))] == []


def test_an_unknown_public_name_is_answered_with_the_nearest() -> None:
    import headcount as hc

    with pytest.raises(AttributeError, match=r"no attribute 'Maks'. Did you mean 'Mask'\?"):
        hc.Maks  # noqa: B018
    with pytest.raises(ImportError, match="Scors"):
        from headcount import Scors  # noqa: F401


def test_no_room_has_the_name_of_a_public_function() -> None:
    import headcount

    assert {*ROOMS, *FOUNDATION}.isdisjoint(headcount.__all__)


@pytest.mark.parametrize("room", sorted({*ROOMS, *FOUNDATION} - {"cli", "compat"}))
def test_every_room_says_what_is_public(room: str) -> None:
    """From 3 to 17 names; no file of the room has one of them, which would hide it."""
    package = importlib.import_module(f"headcount.{room}")
    text = (SOURCE / room / "__init__.py").read_text(encoding="utf-8")
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    public = {
        alias.name: str(node.module)
        for node in imports
        for alias in node.names
        if str(node.module).startswith(f"headcount.{room}.")
    }
    assert 3 <= len(public) <= 17
    assert {path.stem for path in (SOURCE / room).iterdir()}.isdisjoint(public)
    assert set(public) <= set(dir(package))
    for name, module in public.items():
        assert getattr(package, name) is getattr(importlib.import_module(module), name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing_like_this'"):
        package.nothing_like_this  # noqa: B018


def test_the_extras_are_those_of_the_project_file() -> None:
    from headcount.base.extras import EXTRAS

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    modules = {"pillow": "PIL", "lm-eval": "lm_eval"}
    packages = {
        extra: [re.split(r"[<>=\[]", item)[0] for item in items]
        for extra, items in project["optional-dependencies"].items()
        if extra not in {"all", "dev"}
    }
    names = {
        extra: {modules.get(item, item) for item in items} for extra, items in packages.items()
    }
    assert {extra.name: set(extra.modules) for extra in EXTRAS} == names


def test_what_the_doctor_looks_for_is_what_the_project_needs() -> None:
    from headcount.base.extras import CORE

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {re.split(r"[<>=]", item)[0] for item in project["dependencies"]}
    assert set(CORE) <= needed


NOT_IMPORTED = {
    "onnx": "torch's exporter writes with it",
    "sentencepiece": "transformers' tokenizers of translation models read with it",
}
"""What is needed without being imported here, and by whom."""


def test_every_dependency_is_used() -> None:
    from headcount.base.extras import CORE

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"]]
    for extra, items in extras.items():
        needed += items if extra not in {"all", "dev"} else []
    known = CORE | {"pillow": "PIL", "lm-eval": "lm_eval"}
    modules = {known.get(name, name) for name in (re.split(r"[<>=]", item)[0] for item in needed)}
    used = {
        name.split(".")[0]
        for path in SOURCE.rglob("*.py")
        for name in imported(ast.parse(path.read_text(encoding="utf-8")), "headcount.x", False)
    }
    assert modules - used == set(NOT_IMPORTED)


def test_no_public_function_is_dead() -> None:
    """What stands at the top of a module is used somewhere in src or in a benchmark."""
    texts = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
    texts += [path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks").rglob("*.py")]
    words = Counter(word for text in texts for word in re.findall(r"\w+", text))
    dead = {
        node.name
        for text in texts
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and words[node.name] == 1
        # a claim's test is found by its decorator
        and not any("tests(" in ast.unparse(each) for each in node.decorator_list)
    }
    waiting = {"StudyError"}  # exit code 6, for studies of which a part failed
    waiting |= {"prune_layer"}  # of compat.py: code written for transformers 4 imports it
    assert {name for name in dead if not name.startswith("_")} <= waiting


PRIVATE = re.compile(r"\([A-E]\d{1,2}\b")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_papers_are_named_by_title_and_section(path: Path) -> None:
    assert PRIVATE.findall(path.read_text(encoding="utf-8")) == []


def test_constraints_pin_every_dependency() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins), pins
    pinned = {pin.split("==")[0].lower().replace("_", "-") for pin in pins}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"]]
    for extra in ["report", "mt", "onnx", "dev"]:
        needed += [item for item in extras[extra] if not item.startswith("headcount")]
    names = {re.split(r"[<>=]", item)[0].lower().replace("_", "-") for item in needed}
    assert names <= pinned
    assert "torch==2.13.0" in pins


def test_what_is_pinned_installs_on_the_oldest_python_that_is_admitted() -> None:
    """Debian's python3 is 3.11.2; a pin that wants 3.11.5 ends `make demo` there."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    refused = {}
    for name, pin in (line.split("==") for line in lines if "==" in line and line[0] != "#"):
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        wants = found.metadata.get("Requires-Python", "")
        if found.version == pin and not SpecifierSet(wants).contains("3.11.0"):
            refused[name] = wants
    assert refused == {}


def test_the_oldest_constraints_are_the_lower_bounds() -> None:
    lines = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8").lower().splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for needed in project["dependencies"]:
        name, bound = needed.lower().split(",")[0].split(">=")
        zeros = re.sub(r"(\.0)*$", "", pins[name])
        assert zeros == bound, f"{name}: {pins[name]} is tried, {bound} is admitted"


def test_the_readme_does_not_install_what_is_not_published() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "not published yet" in text
    assert not re.search(r"pip install '?headcount(\[\w+\])?'?\s(?!@)", text)


def test_the_command_is_called_headcount() -> None:
    from headcount.cli.main import main

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (name, target), *more = project["scripts"].items()
    assert (name, target, more) == ("headcount", f"{main.__module__}:{main.__name__}", [])


def test_names_say_what_they_hold() -> None:
    from tools.count import banned_names, count_source

    paths = SOURCE.rglob("*.py")
    names = {path: banned_names(ast.parse(path.read_text(encoding="utf-8"))) for path in paths}
    assert {path: banned for path, banned in names.items() if banned} == {}
    assert count_source(SOURCE)["class names with two meanings"] == 0
