"""What a run depends on, so that it never goes on with something else.

    identity(model, tokenizer)     # class, weights, config and tokenizer, as JSON can hold them
    differences(then, now)         # what changed, in words: "config.hidden_act was gelu, now relu"

Where a model lies, in which precision it was saved and by which version are no part of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor, nn

import headcount
from headcount.base.digest import digest
from headcount.base.names import split_words
from headcount.models.find import unwrap

NOISE = {"name_or_path", "dtype", "torch_dtype", "transformers_version", "architectures"}
"""What a config says of its file and not of the model; also every name that begins with `_`."""
UNSAID = "not there"


def identity(model: nn.Module, tokenizer: object = None) -> dict[str, Any]:
    """Everything about a model and its tokenizer that a result depends on."""
    bare = unwrap(model)
    parts: dict[str, object] = {
        "class": getattr(type(bare), "base_class", type(bare)).__name__,
        "weights": weights_fingerprint(bare),
        "config": config_of(bare),
    }
    if tokenizer is not None:
        parts["tokenizer"] = tokenizer_fingerprint(tokenizer)
    return parts


def weights_fingerprint(model: nn.Module) -> str:
    """A short name for exactly these weights, of all shapes and dtypes."""
    weights = sorted(unwrap(model).state_dict().items())
    return digest(
        piece
        for name, value in weights
        if isinstance(value, Tensor)
        for piece in (f"{name}{tuple(value.shape)}{value.dtype}", raw(value))
    )


def raw(tensor: Tensor) -> memoryview:
    """The bytes of a tensor of any dtype, not copied where it lies in one piece on the CPU."""
    flat = tensor.detach().cpu().contiguous().flatten()
    return flat.view(torch.uint8).numpy().data


def config_of(model: nn.Module) -> dict[str, Any]:
    """A model's config, with how it generates, as plain JSON and without what is noise."""
    settings: dict[str, Any] = {}
    for name in ("config", "generation_config"):
        part: Any = getattr(unwrap(model), name, None)
        if part is not None:
            plain = _said(json.loads(json.dumps(part.to_dict(), default=str)))
            settings |= plain if name == "config" else {"generation": plain}
    return settings


def _said(value: object) -> Any:
    """A nest without noise, and without settings that are None: a saved config leaves some out."""
    if isinstance(value, dict):
        return {
            name: _said(item)
            for name, item in value.items()
            if name not in NOISE and not name.startswith("_") and item is not None
        }
    return [_said(item) for item in value] if isinstance(value, list) else value


def tokenizer_fingerprint(tokenizer: Any) -> str:
    """How many tokens there are, and a short name for exactly how texts become them.

    Of a processor of images or sound, a short name for its settings and its tokenizer.
    """
    if not hasattr(tokenizer, "get_vocab"):
        inside = getattr(tokenizer, "tokenizer", None)
        words = "" if inside is None else tokenizer_fingerprint(inside)
        settings = json.dumps(_said(tokenizer.to_dict()), sort_keys=True, default=str)
        return f"{type(tokenizer).__name__} {words} {digest(settings)}".replace("  ", " ")
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        inside: Any = json.loads(backend.to_str())
        for name in ("truncation", "padding"):  # left there by whoever called it last
            inside.pop(name, None)
    else:
        pieces = ("sp_model", "spm_source", "spm_target")
        models = [getattr(tokenizer, name, None) for name in pieces]
        protos = [model.serialized_model_proto() for model in models if model is not None]
        inside = [tokenizer.get_vocab(), [digest(proto, size=64) for proto in protos]]
    settings = ("padding_side", "truncation_side", "model_max_length", "pad_token_type_id")
    content = [
        inside,
        {name: getattr(tokenizer, name, None) for name in settings},
        {name: str(token) for name, token in tokenizer.special_tokens_map.items()},
    ]
    if template := getattr(tokenizer, "chat_template", None):
        content.append(template)
    text = json.dumps(content, sort_keys=True, default=str)
    return f"{len(tokenizer)} tokens {digest(text)}"


def versions(*more: str) -> dict[str, str]:
    """What computed this: recorded with every run, and no part of its identity."""
    packages = ("torch", "transformers", "numpy", *more)
    return {"headcount": headcount.__version__} | {name: version(name) for name in packages}


def differences(then: Mapping[str, object], now: Mapping[str, object], most: int = 5) -> str:
    """What changed from one nest of settings to another, in words; empty when nothing did.

    >>> differences({"seed": 0, "config": {"act": "gelu"}}, {"seed": 0, "config": {"act": "relu"}})
    'config.act was gelu, now relu'
    """
    # through JSON, as the saved ones went
    old, new = dict(_flat(_plain(then))), dict(_flat(_plain(now)))
    names = [name for name in {**old, **new} if old.get(name, UNSAID) != new.get(name, UNSAID)]
    changes = [
        f"{_short(name)} was {_short(old.get(name, UNSAID))}, now {_short(new.get(name, UNSAID))}"
        for name in names[:most]
    ]
    return "; ".join(changes + ([f"and {len(names) - most} more"] if len(names) > most else []))


def _plain(data: object) -> Any:
    return json.loads(json.dumps(data, default=str))


def _flat(data: Mapping[str, object], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _short(value: object) -> str:
    text = split_words(value)
    return text if len(text) <= 60 else text[:57] + "…"
