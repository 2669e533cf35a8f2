"""The config of a model, checked before anything is built by it, and the class that it names.

A config.json may hold anything. What describes no model is refused in one sentence, and so are
sizes that no machine has memory or time for.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import warnings
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import transformers
from transformers import CONFIG_MAPPING, AutoConfig, PreTrainedConfig, PreTrainedModel
from transformers.utils import logging

from headcount.base.errors import (
    HeadcountError,
    MissingExtraError,
    NotFoundError,
    UnsupportedError,
    UsageError,
)
from headcount.base.files import parse_json, read_text
from headcount.base.names import require
from headcount.base.text import short
from headcount.models.foreign import take_layers
from headcount.models.shipped import locate, no_model

HEADS = {
    "base": "AutoModel",
    "sequence-classification": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
    "question-answering": "AutoModelForQuestionAnswering",
    "masked-lm": "AutoModelForMaskedLM",
    "causal-lm": "AutoModelForCausalLM",
    "seq2seq-lm": "AutoModelForSeq2SeqLM",
    "image-classification": "AutoModelForImageClassification",
    "text": "AutoModelForCausalLM",
    "ctc": "AutoModelForCTC",
    "speech": "AutoModelForCTC",
    "speech-seq2seq": "AutoModelForSpeechSeq2Seq",
}
"""What stands on top of the model, and the transformers class that brings it; see `WRITTEN`."""
WRITTEN = {"text": "seq2seq-lm", "speech": "speech-seq2seq"}
"""What is on top of an encoder–decoder instead."""
LARGEST = 2**40
"""Any number of a config; vocabularies and positions have a few million."""
COUNTS: dict[re.Pattern[str], int] = {
    re.compile(r"layers?$|^depths?$|num_(blocks|stages)$"): 2_000,
    re.compile(r"experts$"): 20_000,
    re.compile(r"labels$|num_classes$|num_codebooks$"): 1_000_000,
}
"""Numbers of things that Python builds one by one, by the ends of their names: the most of each."""
SIZES = re.compile(
    r"^(hidden|vocab|intermediate)_size$|(^|_)heads?$|^num_(hidden_|encoder_|decoder_)?layers$"
    r"|^n_(embd|layer|positions)$|^d_(model|ff|kv)$|^head_dim$"
)
"""Names of numbers that are never below 0; others may be, as in vision_feature_layer: -2."""
UNCHECKED: dict[str, type[int | bool]] = {
    field.name: type(field.default)
    for field in fields(PreTrainedConfig)
    if isinstance(field.default, int)
}
"""Settings that all configs have, and that transformers takes as they are written."""


def load_config(
    name: str | os.PathLike[str],
    *,
    trust_remote_code: bool = False,
    model_type: str | None = None,
    **changes: object,
) -> PreTrainedConfig:
    """The config of a model folder, a config.json or a hub name."""
    name = locate(name)
    path = Path(name)
    file = path / "config.json" if path.is_dir() else path
    if path.is_dir() and not file.is_file():
        raise NotFoundError(f"'{name}' is not a model folder: it has no config.json.")
    written = _written(file) if file.is_file() else {}
    kind: Any = _config_class(file, written, model_type) if written else AutoConfig
    layers = {} if "headcount" in written or _reads_layers(written) else take_layers(written, file)
    try:
        with silent():
            if layers and kind is AutoConfig:
                config = CONFIG_MAPPING[written["model_type"]].from_dict(written, **changes)
            else:
                config = kind.from_pretrained(name, trust_remote_code=trust_remote_code, **changes)
    except HeadcountError:
        raise
    except Exception as error:
        if not file.is_file() and isinstance(error, OSError | ValueError):
            raise no_model(name) from error
        raise describes_none(name, error) from error
    if not trust_remote_code:
        require_plain_attention(name, config)
    _require_parts(name, config)
    if getattr(config, "headcount", None) is not None:
        for numbers in (
            "_heterogeneity_spec",
            "per_layer_config",
            "allow_global_per_layer_attribute_access",
        ):
            vars(config).pop(numbers, None)  # of exports: what servers read in place of ours
    if layers:
        config._layers_apart = layers  # for `load.py`, which takes it away
    # answers are asked for by name; attention is asked for where it is needed
    config.return_dict = True
    if config.output_attentions:
        config.output_attentions = False
    for part in parts_of(config):  # the same numbers, and rows of any length
        if getattr(part, "chunk_size_feed_forward", 0):
            part.chunk_size_feed_forward = 0
    return config


def model_class(config: PreTrainedConfig, head: str | None = None) -> type[PreTrainedModel]:
    """The transformers class for this config: the one it was saved with, or one with `head`."""
    if getattr(config, "is_encoder_decoder", False):
        head = WRITTEN.get(head or "", head)
    auto = HEADS.get(head or "base", head or "")
    if not (auto.startswith("AutoModel") and hasattr(transformers, auto)):
        require("head", auto, HEADS)
    for saved in _architectures(config.architectures):
        kind = getattr(transformers, saved, None)
        if head is None and isinstance(kind, type) and issubclass(kind, PreTrainedModel):
            return kind
    mapping: Any = getattr(transformers, auto)._model_mapping
    if type(config) not in mapping:
        what = f"{head} model" if head else "model"
        raise UnsupportedError(f"transformers has no {what} for '{config.model_type}'.")
    classes = mapping[type(config)]
    return classes[0] if isinstance(classes, (tuple, list)) else classes


def require_plain_attention(name: str, config: PreTrainedConfig) -> None:
    """Refuse a config that asks for attention or other code from a repository."""
    settings = [item for part in parts_of(config) for item in vars(part).items()]
    for key, value in settings:
        if "_implementation" not in key:
            continue
        for implementation in value.values() if isinstance(value, dict) else (value,):
            if isinstance(implementation, str) and "/" in implementation:
                raise UsageError(
                    f"The config of '{name}' asks for code from the repository "
                    f"{short(implementation)}: take {key.removesuffix('_internal')} out of its "
                    "config.json, or pass trust_remote_code=True if you trust it."
                )


def parts_of(config: PreTrainedConfig) -> Iterator[PreTrainedConfig]:
    """A config and those inside it."""
    yield config
    for value in vars(config).values():
        if isinstance(value, PreTrainedConfig):
            yield from parts_of(value)


@contextmanager
def silent() -> Generator[None]:
    """Nothing of transformers' and torch's own words inside: what is wrong is raised and said."""
    before = logging.get_verbosity()
    logging.set_verbosity(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(before)


def describes_none(name: str, error: Exception) -> HeadcountError:
    """The refusal of a config that transformers cannot build a model by."""
    reason = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, ImportError):
        return MissingExtraError(f"The config of '{name}' needs more packages: {reason[:200]}")
    return UnsupportedError(f"The config of '{name}' describes no model: {reason[:200]}")


def _require_parts(name: str, config: PreTrainedConfig) -> None:
    """Refuse settings in the place of methods or of another kind, and no part for text."""
    for part in parts_of(config):
        for key, kind in UNCHECKED.items():
            if not isinstance(value := getattr(part, key, None), kind | None):
                reason = f"{key} is {short(value)}"
                raise UnsupportedError(f"The config of '{name}' describes no model: {reason}.")
    wrong = [key for key in vars(config) if callable(getattr(type(config), key, None))]
    try:
        text: object = config if wrong else config.get_text_config()
    except ValueError:
        return  # a text encoder and a decoder of something else, as in Musicgen
    except Exception as error:
        raise describes_none(name, error) from error
    if wrong or not isinstance(text, PreTrainedConfig):
        what = (
            f"{short(wrong[0])} is no setting" if wrong else f"its part for text is {short(text)}"
        )
        raise UnsupportedError(f"The config of '{name}' describes no model: {what}.")


def _written(file: Path) -> dict[str, Any]:
    """A config.json as it is written."""
    try:
        text = read_text(file, "config of a model")
        written = parse_json(text, f"{file} cannot be read as JSON")
    except UsageError as error:
        raise NotFoundError(str(error)) from error
    if not isinstance(written, dict):
        raise NotFoundError(f"{file} is no config of a model: {short(written)} is no object.")
    _require_sizes(file, written)
    return written


def _reads_layers(written: Mapping[str, object]) -> bool:
    """Whether transformers' own code for this type builds layers by `per_layer_config`."""
    kind = (
        CONFIG_MAPPING[str(name)] if (name := written.get("model_type")) in CONFIG_MAPPING else None
    )
    return kind is not None and "per_layer_config" in inspect.getsource(
        sys.modules[kind.__module__]
    )


def _config_class(file: Path, written: Mapping[str, object], model_type: str | None) -> Any:
    """AutoConfig, or the class itself when config.json forgot to write its model type."""
    if "model_type" in written:
        if not isinstance(written["model_type"], str):
            raise UnsupportedError(f"{file} has the model_type {short(written['model_type'])}.")
        return AutoConfig
    for saved in _architectures(written.get("architectures")):
        kind = getattr(getattr(transformers, saved, None), "config_class", None)
        if kind is not None:
            return kind
    if model_type is not None and model_type in CONFIG_MAPPING:
        return CONFIG_MAPPING[model_type]
    raise UnsupportedError(
        f"{file} does not say which model_type it is for: write it there, or pass model_type=."
    )


def _architectures(names: object) -> list[str]:
    """The classes that a config.json names, which is a list where it is one at all."""
    if names is None:
        return []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UnsupportedError(
            f"The architectures of a config.json are names of classes, not {short(names)}."
        )
    return names


def _require_sizes(file: Path, written: Mapping[str, object]) -> None:
    """Refuse numbers that no model has, before anything is built as large as they say."""
    for key, value in _numbers(written):
        most = next((most for name, most in COUNTS.items() if name.search(key)), LARGEST)
        if value < 0 and SIZES.search(key):
            raise UnsupportedError(f"{file} describes no model: {short(key)} is {short(value)}.")
        if abs(value) > most:
            raise UnsupportedError(
                f"{file} describes no model: {short(key)} is {short(value)}, and headcount builds "
                f"models with at most {most:,}."
            )


def _numbers(data: object, key: str = "") -> Iterator[tuple[str, int]]:
    """Every whole number of a config, with the key it stands under."""
    if type(data) is int:
        yield key, data
    elif isinstance(data, dict):
        for name, value in data.items():
            yield from _numbers(value, name)
    elif isinstance(data, list):
        for value in data:
            yield from _numbers(value, key)
