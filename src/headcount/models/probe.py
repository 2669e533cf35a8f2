"""Small inputs that run a model once, and a strict comparison of two models' answers to them."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from headcount.base.errors import HeadcountError, UnsupportedError, UsageError
from headcount.models.hooks import evaluating
from headcount.models.media import layouts
from headcount.models.memory import remembered

TOLERANCE = {
    torch.float64: 1e-9,
    torch.float32: 1e-5,
    torch.float16: 1e-2,
    torch.bfloat16: 6e-2,
}
"""Largest accepted difference between removed and masked, relative to the largest value."""

LARGEST = 2**27
"""Numbers in a probe input: a batch of two images has a few hundred thousand."""
MEDIA = ("pixel_values", "input_features", "input_values")


def probe_inputs(model: nn.Module, *, batch: int = 2, length: int = 7, seed: int = 0) -> dict:
    """Inputs of the kind `model` takes: tokens with padding, pixels, audio features, or several."""
    config: Any = model.config
    length = max(length, _shortest(config))
    names = inspect.signature(model.forward).parameters
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(seed)

    def floats(*shape: int) -> Tensor:
        if math.prod(shape) > LARGEST:
            raise UnsupportedError(
                f"{type(model).__name__} takes inputs of {' x '.join(map(str, shape))} numbers, by "
                f"its config; headcount makes up at most {LARGEST:,}."
            )
        return torch.randn(*shape, generator=generator).to(device, dtype_of(model))

    inputs: dict[str, Tensor] = {}
    if "pixel_values" in names:
        inputs["pixel_values"] = floats(batch, *_image_shape(config))
    if "input_features" in names:
        frames = 2 * getattr(config, "max_source_positions", 2 * length)
        bins = getattr(config, "num_mel_bins", 80)
        inputs["input_features"] = floats(batch, bins, frames)
    if "input_values" in names and not inputs:
        inputs["input_values"] = floats(batch, 4000)
    takes_tokens = "input_ids" in names
    if takes_tokens:
        ids = _tokens(config, batch, length, generator)
        inputs["input_ids"] = ids.to(device)
        if "attention_mask" in names:
            inputs["attention_mask"] = _padding(batch, length).to(device)
    if "entity_ids" in names:
        inputs |= _entities(config, batch, generator, device)
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in names:
        inputs["decoder_input_ids"] = _tokens(config, batch, length - 2, generator).to(device)
    elif getattr(config, "add_cross_attention", False) and "encoder_hidden_states" in names:
        inputs["encoder_hidden_states"] = floats(batch, length + 2, config.hidden_size)
    if not inputs:
        raise UnsupportedError(
            f"headcount knows no probe input for {type(model).__name__}; pass one with probe=."
        )
    return inputs


def reads_text(kind: object) -> bool:
    """Whether a model, or its class, takes rows of tokens: ViT and speech encoders do not."""
    known = takes(kind)
    return "input_ids" in known or not known & set(MEDIA)


def takes(kind: Any) -> set[str]:
    """The names of what a model, or its class, can be given."""
    return set(inspect.signature(kind.forward).parameters)


def describe(inputs: Mapping[str, Tensor]) -> str:
    """One example of a batch in words: `128 tokens`, `an image of 3 x 224 x 224`."""
    words = {
        "pixel_values": "an image of {}",
        "input_features": "{} audio features",
        "input_values": "{} audio samples",
        "input_ids": "{} tokens",
    }
    if "input_ids" not in inputs:
        words["decoder_input_ids"] = "{} tokens"
    parts = [
        text.format(" x ".join(map(str, inputs[name].shape[1:])))
        for name, text in words.items()
        if name in inputs
    ]
    return " and ".join(parts)


def run(model: nn.Module, inputs: Mapping[str, object]) -> list[Tensor]:
    """All floating-point tensors the model returns, in order, without its key-value cache."""
    with torch.no_grad(), evaluating(model), seeded():
        return tensors(model(**inputs))


@contextmanager
def seeded() -> Generator[None]:
    """The same random numbers inside every time: a few models draw some whenever they run."""
    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(0)
        yield


def find_probe(model: nn.Module, *, length: int = 7, seed: int = 0) -> dict[str, Any]:
    """The first probe input that the model accepts: padded, unpadded, one example, tokens alone."""
    return dict(remembered(model, ("probe", length, seed), lambda: _probe(model, length, seed)))


def _probe(model: nn.Module, length: int, seed: int) -> dict[str, object]:
    first: Exception | None = None
    for batch, masked, all_kinds in ((2, 1, 1), (2, 0, 1), (1, 0, 1), (2, 1, 0), (1, 0, 0)):
        try:
            inputs = probe_inputs(model, batch=batch, length=length, seed=seed)
            if not masked:
                inputs.pop("attention_mask", None)
            if not all_kinds:
                # models for text and images take text alone, and images only with their own tokens
                inputs = {name: value for name, value in inputs.items() if name not in MEDIA}
            run(model, inputs)
        except UnsupportedError as error:
            first = first or error
        except HeadcountError:
            raise  # another thread has the model: no input would do
        except Exception as error:
            first = first or error
        else:
            return inputs
    for inputs in _towers(model, length, seed):
        with contextlib.suppress(Exception):
            run(model, inputs)
            return inputs
    reason = str(first).strip().split("\n")[0] or type(first).__name__
    if isinstance(first, UnsupportedError):
        raise first
    raise UnsupportedError(
        f"{type(model).__name__} does not run on headcount's probe input ({reason}); pass one "
        "with probe=."
    ) from first


def _towers(model: nn.Module, length: int, seed: int) -> Iterator[dict[str, object]]:
    """Inputs of other kinds than plain tokens, images and sounds, beside tokens or alone."""
    config: Any = model.config
    names = inspect.signature(model.forward).parameters
    device = next(model.parameters()).device
    for batch in (2, 1):
        generator = torch.Generator().manual_seed(seed)

        def floats(*shape: int, generator: torch.Generator = generator) -> Tensor:
            if math.prod(shape) > LARGEST:
                raise UnsupportedError(f"{type(model).__name__} takes inputs that are too large.")
            return torch.randn(*shape, generator=generator).to(dtype_of(model))

        tokens: dict[str, object] = {}
        for name in ("input_ids", "decoder_input_ids", "qformer_input_ids"):
            if name in names:
                tokens[name] = _tokens(config, batch, length, generator)
        plain = [tokens, {}] if tokens else [{}]
        for extra in layouts(model, config, floats, batch, length):
            for base in plain:
                inputs = base | extra
                yield {
                    name: value.to(device) if isinstance(value, Tensor) else value
                    for name, value in inputs.items()
                }


def relative_difference(left: list[Tensor], right: list[Tensor]) -> float:
    """Largest |left - right| / largest |left| over pairs of tensors; infinite when they misfit."""
    if len(left) != len(right):
        return float("inf")
    worst = 0.0
    for a, b in zip(left, right, strict=True):
        if a.shape != b.shape:
            return float("inf")
        if a.numel():
            a, b = a.double(), b.double()
            scale = a.abs().max().clamp_min(1e-12)
            worst = max(worst, float((a - b).abs().max() / scale))
            if not torch.isfinite(b).all():
                return float("inf")
    return worst


def require_finite(model: nn.Module, answers: list[Tensor]) -> None:
    """Refuse a model whose weights, read by a probe or not, or whose answers are not numbers."""
    name = next(iter(no_numbers(model)), "")
    if name:
        raise UsageError(f"The weights in {name} are not all numbers (NaN or infinite).")
    if all(torch.isfinite(answer).all() for answer in answers):
        return
    raise UsageError("The model's answer to the probe input is not a number (NaN or infinite).")


def no_numbers(model: nn.Module) -> dict[str, int]:
    """The parameters and buffers with NaN or infinite values, and how many of them.

    What a class computes by itself, and saves in no file, may be infinite: masks are.
    """
    saved = model.state_dict()
    wrong = {}
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        # a finite sum, which is quick, has no other terms
        if tensor.is_floating_point() and not tensor.sum(dtype=torch.float32).isfinite():
            bad = tensor.isnan() if name not in saved else ~tensor.isfinite()
            wrong |= {name: int(bad.sum())} if bad.any() else {}
    return wrong


def tensors(value: object) -> list[Tensor]:
    """The floating-point tensors in a model's or module's output, without caches and attention."""
    return [tensor.detach() for tensor in _tensors(value)]


def _tensors(value: object) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        if value.is_floating_point():
            yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key not in ("past_key_values", "attentions", "cross_attentions"):
                yield from _tensors(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)


def dtype_of(model: nn.Module) -> torch.dtype:
    """The floating-point type of a model's first weights."""
    return next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)


def _image_shape(config: object) -> tuple[int, int, int]:
    vision = getattr(config, "vision_config", config)
    size = getattr(vision, "image_size", 224)
    height, width = size if isinstance(size, (tuple, list)) else (size, size)
    return getattr(vision, "num_channels", 3), height, width


def _tokens(config: object, batch: int, length: int, generator: torch.Generator) -> Tensor:
    text = text_config(config)
    vocabulary = getattr(text, "vocab_size", None) or getattr(config, "vocab_size", 30)
    special = {
        value
        for source in (config, text)
        for name, value in vars(source).items()
        if name.endswith(("token_id", "token_index")) and isinstance(value, int)
    }
    plain = torch.tensor([i for i in range(min(vocabulary, 500)) if i not in special] or [0])
    ids = plain[torch.randint(len(plain), (batch, length), generator=generator)]
    end = getattr(text, "eos_token_id", None)
    if isinstance(end, int) and 0 <= end < vocabulary:
        # classifiers on BART read the state of the last end token
        ids[:, -1] = end
    return ids


def text_config(config: Any) -> object:
    """The part of a config that is about tokens."""
    if not hasattr(config, "get_text_config"):
        return config
    try:
        return config.get_text_config()
    except ValueError:
        # a text encoder and a decoder of something else, as in Musicgen
        return config.get_text_config(encoder=True)


def _shortest(config: Any) -> int:
    """Tokens below which BigBird's block-sparse attention gives way to another."""
    if getattr(config, "attention_type", "") != "block_sparse":
        return 1
    least = (5 + 2 * config.num_random_blocks) * config.block_size + 1
    # one that takes fewer tokens is never sparse
    return least if least <= getattr(config, "max_position_embeddings", least) else 1


def _padding(batch: int, length: int) -> Tensor:
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[-1, length - 2 :] = 0
    return mask


def _entities(
    config: Any, batch: int, generator: torch.Generator, device: torch.device
) -> dict[str, Tensor]:
    """LUKE's entities, each with the places of its mention in the text."""
    ids = torch.randint(1, config.entity_vocab_size, (batch, 2), generator=generator)
    places = torch.tensor([[0, 1, -1], [2, -1, -1]]).expand(batch, -1, -1)
    return {"entity_ids": ids.to(device), "entity_position_ids": places.to(device)}
