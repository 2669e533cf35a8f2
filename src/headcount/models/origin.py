"""Where a model came from: its name without this machine's paths, and the files beside it."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from huggingface_hub import metadata_load, snapshot_download
from transformers import PreTrainedConfig

from headcount.base.errors import HeadcountError
from headcount.base.files import read_bytes, read_json
from headcount.base.outputs import RESULTS
from headcount.models.bars import bars_on_terminals_only
from headcount.models.config import parts_of
from headcount.models.tokenizers import LARGEST as JSON
from headcount.models.weights import SHOWN, note

HUB = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?", re.ASCII)
WEIGHTS = re.compile(
    r".*(\.(safetensors|bin|h5|msgpack|pt|pt2|pth|ckpt|gguf|ot|tflite|mlmodel|index\.json)"
    r"|\.onnx.*)",
    re.IGNORECASE,
)
OWN = {
    "config.json",
    "README.md",
    "mask.json",
    "record.json",
    "gates.npz",
    "curve.jsonl",
    "settings.json",
    "result.json",
    "last-open.json",
}
"""What is written anew for each model, and headcount's records of how another one was made."""
SMALL = ("*.json", "*.txt", "*.md", "*.model", "*.spm", "*.jinja", "LICENSE*", "[0-9]_*/*")
"""What is fetched of a model on the hub besides its weights; `1_Pooling` and the like are whole."""

CODE = (".py", ".pyc", ".so")
"""Endings of files that can be run; none of them goes into what is written."""
INHERITED = (
    "base_model",
    "license",
    "license_name",
    "license_link",
    "language",
    "pipeline_tag",
)
"""What a card says of a model that stays true when heads are removed."""
LARGEST_CARD = 2**20
"""Bytes of the largest card that is read."""


def hub_name(name: str) -> str:
    """The name if it is one on the hub, "" for a folder of this machine."""
    return name if HUB.fullmatch(name) and not Path(name).exists() else ""


def base_name(config: object) -> str:
    """The model that heads were first removed from: a hub name, or `./NAME` of a folder."""
    written: Mapping[str, object] | None = getattr(config, "headcount", None)
    if written:
        return str(written.get("base") or "")
    name = getattr(config, "_name_or_path", "") or ""
    return hub_name(name) or (f"./{Path(name).resolve().name}" if name else "")


def folder_of(name: str) -> Path | None:
    """The model folder of this name, or what the hub has beside the weights; None without any."""
    if name and (Path(name) / "config.json").is_file():
        return Path(name)
    return _snapshot(name) if name and hub_name(name) else None


@functools.cache
def _snapshot(name: str) -> Path | None:
    try:
        with bars_on_terminals_only():
            return Path(snapshot_download(name, allow_patterns=list(SMALL)))
    except Exception:
        # no such model, no network: what lies beside it is not worth a failure
        return None


def copy_companions(name: str, folder: Path) -> None:
    """Copy every file of a model's folder that is not weights, config or a record.

    That is its tokenizer, its processor, and what others keep there: the modules of
    sentence-transformers (`modules.json`, `1_Pooling`), a license. Code stays where it is.
    """
    source = folder_of(name)
    for path in _companions(source) if source is not None else ():
        target = folder / path.relative_to(source)  # pyright: ignore[reportArgumentType]
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            if not _copy_without_code(path, target):
                shutil.copyfile(path, target)


def copy_scores(name: str, folder: Path) -> None:
    """Copy what the hub shows of a model's scores; only to where the same model is written."""
    source = Path(name)
    for path in sorted((source / RESULTS).glob("*.yaml")):
        if path.is_file() and _inside(source, path):
            (folder / RESULTS).mkdir(exist_ok=True)
            shutil.copyfile(path, folder / RESULTS / path.name)


def leave_code(name: str, config: PreTrainedConfig) -> None:
    """Take what points to code out of a config, and note that none is run nor carried along."""
    named = [vars(part).pop("auto_map", None) for part in parts_of(config)]
    folder = Path(name)
    files = [path.name for path in sorted(folder.glob("*.py"))] if name and folder.is_dir() else []
    parts = ["auto_map in its config.json"] * any(named) + files[:SHOWN]
    if parts:
        more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
        note(
            f"'{name}' has code of its own ({', '.join(parts)}{more}): headcount runs none of it, "
            "and what it writes has none of it."
        )


def _copy_without_code(path: Path, target: Path) -> bool:
    """Copy a JSON file without the `auto_map` in it; False where there is none."""
    if path.suffix != ".json" or b'"auto_map"' not in read_bytes(path, "file", JSON):
        return False
    try:
        data = read_json(path, "file", JSON)
    except HeadcountError:
        return False
    target.write_text(json.dumps(_without_code(data), indent=2, ensure_ascii=False) + "\n", "utf-8")
    return True


def _without_code(data: object) -> object:
    if isinstance(data, dict):
        return {key: _without_code(value) for key, value in data.items() if key != "auto_map"}
    return [_without_code(value) for value in data] if isinstance(data, list) else data


def _companions(source: Path) -> Iterator[Path]:
    parts = _parts(source)
    for path in sorted(source.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_file():
            plain = path.name not in OWN and path.suffix not in CODE
            if plain and not WEIGHTS.fullmatch(path.name) and _inside(source, path):
                yield path
        elif not path.is_symlink():
            nested = [
                Path(root) / file
                for root, _, files in os.walk(path)
                for file in files
                if (Path(root) / file).is_file()
                and Path(file).suffix not in CODE
                and _inside(source, Path(root) / file)
            ]
            # a folder with weights that is no part of this model is another one: a checkpoint
            if path.name in parts or not any(WEIGHTS.fullmatch(file.name) for file in nested):
                yield from sorted(nested)


def _parts(source: Path) -> set[str]:
    """The folders that sentence-transformers puts behind the model."""
    try:
        modules = read_json(source / "modules.json", "list of modules")
        return {Path(module["path"]).parts[0] for module in modules if module["path"]}
    except (HeadcountError, TypeError, KeyError):
        return set()


def _inside(source: Path, path: Path) -> bool:
    """Whether a file lies in the folder, and is no link to somewhere else on this machine."""
    source = source.resolve()
    # the hub's snapshots link to the files of their own cache
    root = source.parent.parent if source.parent.name == "snapshots" else source
    return path.resolve().is_relative_to(root)


def front_matter(name: str) -> dict[str, object]:
    """What the card of a model says to the hub about its license, base and use; {} without one."""
    folder = folder_of(name)
    card = None if folder is None else folder / "README.md"
    if card is None or not card.is_file() or card.stat().st_size > LARGEST_CARD:
        return {}
    try:
        data = metadata_load(card)
    except Exception:
        # whatever a damaged card holds, it says nothing
        return {}
    entries = data if isinstance(data, dict) else {}
    return {key: entries[key] for key in INHERITED if _short(entries.get(key))}


def _short(value: object) -> bool:
    """Whether this is a word or a few, which is all that these keys take."""
    words = value if isinstance(value, list) else [value]
    return 0 < len(words) <= 100 and all(isinstance(w, str) and 0 < len(w) < 300 for w in words)
