"""A scale with everything shrunk: two steps of tiny models, on a few rows in the real layouts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    RobertaConfig,
    RobertaForMaskedLM,
)

from headcount.papers.scales import FOLDER, DataPaths, read_scale
from headcount.runs.run import Run
from headcount.studies.plan import Plan
from headcount.tasks import open_task
from headcount.tasks.glue import LAYOUTS
from headcount.tasks.loading import load_tokenizer

ALWAYS: dict[str, Any] = {
    "steps": 2, "batch_size": 4, "accumulate": 1, "limit": 6, "bootstrap": 20,
    "max_length": 12, "samples": 4, "importance_samples": 4, "points": 3, "scorer_steps": 2,
    "repeats": 6, "length": 8, "batch": 2, "timing_seconds": 0,
}  # fmt: skip
WHERE_SAID = {"random": 6, "new_tokenizer": 300}
ROWS = 16


def shrunk_plan(scale: str, groups: Iterable[str], home: Path) -> Plan:
    """The first run of each group, and of what it starts from, small enough for a moment."""
    plan = read_scale(scale, groups, DataPaths(data=home / "data"), elsewhere=True)
    first: dict[str, Any] = {}
    for cell in plan.cells:
        # heads that a task needs are a share of its score: one that is 0 by chance has none
        if cell.group != "drift" or cell.axes["task"] == "sst2":
            first.setdefault(cell.group, cell)
    models = _models(home)
    cells = []
    for cell in first.values():
        replaced = models | ({"roberta-large": "pocket"} if cell.group == "drift" else {})
        cells.append(replace(cell, run=Run.read(_shrunk(cell.run.to_plain(), replaced))))
    return replace(plan, cells=cells)


def _shrunk(value: Any, models: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return models.get(value, value)
    if isinstance(value, list):
        return [_shrunk(item, models) for item in value]
    if not isinstance(value, Mapping):
        return value
    small = {name: _shrunk(item, models) for name, item in value.items()}
    for name in small.keys() & ALWAYS.keys():
        small[name] = ALWAYS[name]
    for name in small.keys() & WHERE_SAID.keys():
        small[name] = small[name] and WHERE_SAID[name]
    if "fraction" in small:  # of a training; calibration has rows of its own
        small["rows"] = ROWS
    if isinstance(small.get("random"), int):
        small["samples"] = None
    if isinstance(small.get("best"), list):
        small["best"] = small["best"][:2]
    return small


def _models(home: Path) -> dict[str, str]:
    """The paper's name of a model -> a folder of its family, made where it is not there."""
    size = {"hidden_size": 16, "intermediate_size": 16, "max_position_embeddings": 64}
    families: dict[str, tuple[Any, Any, dict[str, int]]] = {
        "bert-base-uncased": (BertForMaskedLM, BertConfig, {"layers": 4, "heads": 4}),
        "roberta-large": (RobertaForMaskedLM, RobertaConfig, {"layers": 6, "heads": 2}),
        "albert-base-v1": (AlbertForMaskedLM, AlbertConfig, {"layers": 2, "heads": 4}),
        "albert-xxlarge-v2": (AlbertForMaskedLM, AlbertConfig, {"layers": 2, "heads": 8}),
    }
    tokenizer = load_tokenizer("pocket")
    folders: dict[str, str] = {}
    for name, (model, config, shape) in families.items():
        folder = home / "models" / name
        torch.manual_seed(0)
        changes = {"num_hidden_layers": shape["layers"], "num_attention_heads": shape["heads"]}
        model(
            config(
                vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, type_vocab_size=2,
                **size, **changes,
            )
        ).save_pretrained(folder)  # fmt: skip
        tokenizer.save_pretrained(folder)
        folders[name] = str(folder)
    given = FOLDER / "configs" / "transformer-base"
    config = json.loads((given / "config.json").read_text(encoding="utf-8"))
    config |= {"d_model": 16, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    config["max_position_embeddings"] = ALWAYS["max_length"]  # no longer translations than that
    folder = home / "models" / given.name
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folders | {str(given): str(folder)}


def make_data(home: Path) -> Path:
    """GLUE, Wikipedia, WikiText-103 and WMT'14 in their official layouts, a few rows of each."""
    data = home / "data"
    texts = [str(text) for text in open_task("pocket-sentiment").load("dev", limit=64).texts[0]]
    for name, spec in LAYOUTS.items():
        for stem in ("train", spec.dev):
            _write(data / "glue" / spec.folder / f"{stem}.tsv", _table(name, texts))
    for file in ("wikipedia/train.txt", "wikipedia/dev.txt", "wikitext-103/wiki.train.tokens",
                 "wikitext-103/wiki.test.tokens"):  # fmt: skip
        _write(data / file, texts)
    for pair in (("en", "ru"), ("en", "de")):
        for stem in ("train", "dev", "test"):
            for ending in pair:
                _write(data / "wmt14" / "-".join(pair) / f"{stem}.{ending}", texts)
    return data


def _table(name: str, texts: list[str]) -> list[str]:
    """A task's file: its columns among others that nobody reads, and all labels in turn."""
    spec = LAYOUTS[name]
    values = list(spec.classes or ("0.0", "2.5", "5.0"))
    columns = list(spec.header or ("index", *spec.texts, spec.label))
    lines = [] if spec.header else ["\t".join(columns)]
    for row in range(ROWS):
        cells = {text: texts[row + at] for at, text in enumerate(spec.texts)}
        cells[spec.label] = values[row % len(values)]
        lines.append("\t".join(cells.get(column, str(row)) for column in columns))
    return lines


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
