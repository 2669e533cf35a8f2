"""Export as `model.gguf` for llama.cpp and what is built on it: language models of Llama's block.

Heads may differ from layer to layer: llama.cpp's architecture `deci` reads head counts per layer,
0 included, and has layers that are one linear map; equal layers are written as plain `llama`. The
file is run in llama.cpp (xllamacpp): with float32 weights it must give the model's
log-probabilities along its greedy tokens, and its token ids of texts; what rounder weights change
is reported.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headcount import __version__
from headcount.base.errors import UnsupportedError, UsageError
from headcount.exports.checkpoint import plain_class, require_no_paths
from headcount.exports.formats import ExportFormat, ReadBack
from headcount.exports.gguf_tokenizer import add_tokenizer
from headcount.exports.inputs import Probes
from headcount.models.cut import LinearPath
from headcount.models.find import sites_of
from headcount.models.hooks import evaluating
from headcount.models.linear import has_bias, read_path
from headcount.models.verify import in_float64
from headcount.models.weights import note

if TYPE_CHECKING:
    from gguf import GGUFWriter
    from numpy.typing import NDArray

MODELS = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM")
ROPES = ("default", "linear", "llama3")
"""Rotary embeddings whose frequencies do not depend on the length of a text."""
TOLERANCE = 1e-3
"""Largest difference of a log-probability with float32 weights, relative to the largest logit."""
NEW_TOKENS, LONGEST = 24, 64
TEXTS = (
    "The capital of France is",
    "def fibonacci(n):\n    if n < 2:\n        return n\n",
    "1, 2, 3, 5, 8, 13, 21, 3456789 and 0.001",
    "It's what they've said: \"we'll see, I'd wait\"!",
    "  two spaces, a\ttab\n\n\nand an empty line  ",
    "Größe, naïve, œuvre; Москва, 東京, 한국어 🙂",
    "Once upon a time, in a small village by the sea, there lived",
    "A=B+C*(D-E)/F; x_1[0] -> {y: 'z'} # ok?",
)


class Gguf(ExportFormat):
    """model.gguf, for llama.cpp."""

    extra = "gguf"
    library = "gguf"
    imports = "import xllamacpp"
    loads = (
        "options = xllamacpp.CommonParams()\n"
        'options.model.path = "path/to/this/folder/model.gguf"\n'
        "server = xllamacpp.Server(options)"
    )
    calls = 'answer = server.handle_completions({"prompt": "a text", "max_tokens": 40})'
    number_types = ("f16", "f32", "q8_0")

    def write(self, model: PreTrainedModel, folder: Path, probes: Probes) -> ReadBack:
        """Header, tokenizer and tensors one by one; then llama.cpp runs the file."""
        heads = _require_block(model)
        tokenizer = probes.tokenizer
        if tokenizer is None:
            raise UsageError(
                "A GGUF file holds its tokenizer, and none is known for this model: save one in "
                "the model's folder, or pass tokenizer=."
            )
        file = folder / "model.gguf"
        if find_spec("xllamacpp") is None:
            text = "llama.cpp is not installed (pip install xllamacpp), so the file was not run"
            note(f"{text}.")
            _write(model, tokenizer, heads, file, self.weights)
            return ReadBack(None, text)
        results = []
        for weights in dict.fromkeys(("f32", self.weights)):
            _write(model, tokenizer, heads, file, weights)
            difference, same = _compared(model, tokenizer, file, probes)
            if weights == "f32" and not difference <= TOLERANCE:
                raise UnsupportedError(
                    f"headcount cannot export {type(model).__name__} ('{model.config.model_type}')"
                    " to GGUF: llama.cpp's log-probabilities differ from the model's by "
                    f"{difference:.2g} of the largest logit."
                )
            results.append((weights, difference, same))
        details = ", ".join(f"{same} with {weights} weights" for weights, _, same in results)
        return ReadBack(
            results[-1][1],
            f"prompts with the same {NEW_TOKENS} greedy tokens in llama.cpp: {details}",
        )


def _write(
    model: PreTrainedModel, tokenizer: Any, heads: list[tuple[int, int]], file: Path, weights: str
) -> None:
    from gguf import GGUFWriter

    uneven = len({*heads}) > 1
    writer = GGUFWriter(file, "deci" if uneven else "llama")
    try:
        _add_numbers(writer, model, heads if uneven else heads[:1])
        add_tokenizer(writer, tokenizer, model.config.vocab_size)
        writer.add_file_type({"f32": 0, "f16": 1, "q8_0": 7}[weights])
        for name, tensor in _tensors(model, heads):
            kind, shape, width = _stored(tensor, weights)
            writer.add_tensor_info(name, shape, width, int(np.prod(shape)) * width.itemsize, kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for name, tensor in _tensors(model, heads):
            writer.write_tensor_data(_packed(name, tensor, weights))
    finally:
        writer.close()


def _require_block(model: PreTrainedModel) -> list[tuple[int, int]]:
    """(query heads, key-value heads) of every layer, of a model that llama.cpp's block computes."""
    config, kind = model.config, plain_class(model).__name__

    def refused(reason: str) -> UnsupportedError:
        return UnsupportedError(
            f"headcount cannot export {kind} ('{config.model_type}') to GGUF: {reason}."
        )

    if kind not in MODELS:
        raise refused(f"it writes {', '.join(MODELS)}")
    window = getattr(config, "sliding_window", None)
    if window is not None and getattr(config, "use_sliding_window", True):
        raise refused(f"its attention has a window of {window} tokens (sliding_window)")
    if config.hidden_act != "silu":
        raise refused(f"its activation is {config.hidden_act}, not silu")
    rope: str = (config.rope_parameters or {}).get("rope_type", "default")
    if rope not in ROPES:
        raise refused(f"its rotary embedding is {rope}, not {', '.join(ROPES)}")
    heads = [(site.heads, site.groups) for site in sites_of(model)]
    for layer, (_, groups) in enumerate(heads):
        attention: Any = model.get_submodule(f"model.layers.{layer}.self_attn")
        if groups:
            continue
        # in llama.cpp a layer with queries and no keys is its output projection alone, without a
        # bias; it takes the size of all heads from layer 0, and drops the bias of an empty layer
        if _path_of(attention) is not None and not has_bias(attention.o_proj):
            heads[layer] = (1, 0)
        elif layer == 0 or has_bias(attention.o_proj):
            heads[layer] = (1, 1)
    others = [layer for layer, (_, groups) in enumerate(heads) if groups]
    require_no_paths(model, "GGUF", [f"model.layers.{layer}.self_attn" for layer in others])
    return heads


def _add_numbers(writer: GGUFWriter, model: PreTrainedModel, heads: list[tuple[int, int]]) -> None:
    """The sizes of the model; one pair of `heads` is that of every layer."""
    config, size = model.config, sites_of(model)[0].head_dim
    queries, groups = (list(counts) for counts in zip(*heads, strict=True))
    writer.add_name(str(getattr(config, "_name_or_path", "")).rstrip("/").rpartition("/")[2])
    writer.add_description(f"written by headcount {__version__}")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(queries if len(queries) > 1 else queries[0])
    writer.add_head_count_kv(groups if len(groups) > 1 else groups[0])
    writer.add_key_length(size)
    writer.add_value_length(size)
    writer.add_rope_dimension_count(size)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)


def _tensors(model: Any, heads: list[tuple[int, int]]) -> Iterator[tuple[str, Tensor]]:
    """Every tensor of the file by its name there, not yet in its type."""
    body, size = model.model, sites_of(model)[0].head_dim
    yield "token_embd.weight", body.embed_tokens.weight
    if (factors := _rope_factors(model, size)) is not None:
        yield "rope_freqs.weight", factors
    for number, (layer, (queries, groups)) in enumerate(zip(body.layers, heads, strict=True)):
        block, attention = f"blk.{number}", layer.self_attn
        if queries:
            yield f"{block}.attn_norm.weight", layer.input_layernorm.weight
        if queries and not groups:
            path = _path_of(attention)
            assert path is not None
            matrix = read_path(path).T.to(layer.input_layernorm.weight.dtype)
            yield f"{block}.attn_output.weight", matrix
        if groups:
            sizes = {"q": queries, "k": groups, "v": groups, "o": queries}
            for part, count in sizes.items():
                linear = getattr(attention, f"{part}_proj")
                name = f"{block}.attn_{'output' if part == 'o' else part}"
                weight, bias = linear.weight.detach(), getattr(linear, "bias", None)
                if not weight.numel():  # an empty layer that must have a head has one of zeros
                    shape = (len(weight), size) if part == "o" else (size, weight.shape[1])
                    weight = layer.input_layernorm.weight.new_zeros(shape)
                    bias = bias if part == "o" else None
                pairs = part in "qk"
                yield f"{name}.weight", _paired(weight, count) if pairs else weight
                if bias is not None:
                    yield f"{name}.bias", _paired(bias, count) if pairs else bias
        yield f"{block}.ffn_norm.weight", layer.post_attention_layernorm.weight
        for part in ("gate", "up", "down"):
            linear = getattr(layer.mlp, f"{part}_proj")
            yield f"{block}.ffn_{part}.weight", linear.weight
            if linear.bias is not None:
                yield f"{block}.ffn_{part}.bias", linear.bias
    yield "output_norm.weight", body.norm.weight
    if model.lm_head.weight is not body.embed_tokens.weight:
        yield "output.weight", model.lm_head.weight


def _path_of(attention: nn.Module) -> LinearPath | None:
    """What recovery put in place of attention, or beside it."""
    path = getattr(attention, "linear_path", None)
    return path if isinstance(path, LinearPath) else None


def _paired(rows: Tensor, heads: int) -> Tensor:
    """Rows of rotated halves as llama.cpp's rotated pairs, head by head."""
    halves = rows.unflatten(0, (heads, 2, -1))
    return halves.transpose(1, 2).flatten(0, 2)


def _rope_factors(model: Any, size: int) -> Tensor | None:
    """What the plain frequencies are divided by, None where they are plain."""
    base = float(model.config.rope_parameters["rope_theta"])
    actual = model.model.rotary_emb.inv_freq.double().cpu()
    plain = base ** -(torch.arange(0, size, 2).double() / size)
    factors = (plain / actual).float()
    return None if torch.allclose(factors, torch.ones(()), rtol=1e-5) else factors


def _stored(tensor: Tensor, weights: str) -> tuple[Any, tuple[int, ...], Any]:
    """How a tensor lies in the file: its GGUF type, and shape and type of the array."""
    from gguf import GGMLQuantizationType as Kind

    if tensor.ndim < 2 or weights == "f32":
        return Kind.F32, tuple(tensor.shape), np.dtype(np.float32)
    rows, columns = tensor.shape
    if weights == "f16" or columns % 32:
        return Kind.F16, (rows, columns), np.dtype(np.float16)
    # 32 numbers in 34 bytes: a float16 scale, and a byte each
    return Kind.Q8_0, (rows, columns // 32 * 34), np.dtype(np.uint8)


def _packed(name: str, tensor: Tensor, weights: str) -> NDArray[np.generic]:
    from gguf import quants

    kind, shape, width = _stored(tensor, weights)
    numbers = tensor.detach().float().cpu().contiguous().numpy()
    with np.errstate(over="ignore"):
        packed = numbers.astype(width) if width.kind == "f" else numbers
    if not np.isfinite(packed).all():
        advice = "" if not np.isfinite(numbers).all() else ": too large for float16, take f32"
        raise UnsupportedError(f"The tensor {name} has numbers that are not finite{advice}.")
    return packed if width.kind == "f" else quants.quantize(numbers, kind).reshape(shape)


def _compared(
    model: PreTrainedModel, tokenizer: Any, file: Path, probes: Probes
) -> tuple[float, str]:
    """The largest difference in llama.cpp, and how many prompts have the same greedy tokens."""
    longest = min(LONGEST, model.config.max_position_embeddings - NEW_TOKENS - 8)
    rows = [row for feeds in probes.feeds for row in _unpadded(feeds)]
    texts = [list(tokenizer(text)["input_ids"]) for text in TEXTS]
    prompts = [row[:longest] for row in (*texts, *rows) if row]
    answers = _run(model, file, {"prompts": prompts, "texts": TEXTS, "tokens": NEW_TOKENS})
    for text, expected, ids in zip(TEXTS, texts, answers["texts"], strict=True):
        if ids != expected:
            raise UnsupportedError(
                f"headcount cannot write this tokenizer for llama.cpp: {text!r} is {expected} "
                f"here and {ids} there."
            )
    worst, same = 0.0, 0
    # llama.cpp computes in float32: a model that rounds to bfloat16 after each step is no measure
    judge = model if model.dtype in (torch.float32, torch.float64) else in_float64(model)
    with evaluating(judge), torch.no_grad():
        for prompt, answer in zip(prompts, answers["answers"], strict=True):
            off, equal = _along(judge, prompt, answer)
            worst, same = max(worst, off), same + equal
    return worst, f"{same} of {len(prompts)}"


def _unpadded(feeds: dict[str, Tensor]) -> Iterator[list[int]]:
    ids = feeds["input_ids"]
    mask = feeds.get("attention_mask", torch.ones_like(ids))
    for row, used in zip(ids, mask, strict=True):
        yield row[used.bool()].tolist()


def _run(model: PreTrainedModel, file: Path, requests: dict[str, object]) -> dict[str, Any]:
    """llama.cpp in a process of its own: what is wrong with a file may end it."""
    script = Path(__file__).with_name("run_gguf.py")
    done = subprocess.run(
        [sys.executable, script, file],
        input=json.dumps(requests), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
        raise UnsupportedError(
            f"headcount cannot export {type(model).__name__} ('{model.config.model_type}') to "
            f"GGUF: llama.cpp does not run the file ({last[:300]})."
        )
    return json.loads(done.stdout)


def _along(model: Any, prompt: list[int], answer: dict[str, Any]) -> tuple[float, bool]:
    """Largest difference along llama.cpp's tokens, and whether they are the model's own."""
    tokens: list[int] = answer["tokens"]
    ids = torch.tensor([prompt + tokens[:-1]], device=model.device)
    logits = model(input_ids=ids).logits[0, len(prompt) - 1 :].double().cpu()
    scores = logits.log_softmax(-1)
    chosen = scores.gather(1, torch.tensor(tokens)[:, None])[:, 0]
    worst = max(
        (scores.amax(-1) - chosen).max().item(),  # the model's own token may be another
        *(
            abs(scores[step, number].item() - score)
            for step, likeliest in enumerate(answer["likeliest"])
            for number, score in likeliest
        ),
    )
    return worst / logits.abs().max().item(), logits.argmax(-1).tolist() == tokens
