"""The zoo: one small model with random weights of every family headcount promises to support.

from zoo import FAMILIES, build
model = build("bert")
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel

from headcount.heads import Layout, Mask

SMALL: dict[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": 64,
}
GROUPED = SMALL | {"num_key_value_heads": 2, "head_dim": 8}
GPT2 = {"vocab_size": 61, "n_embd": 32, "n_layer": 4, "n_head": 4, "n_positions": 64}
T5 = {
    "vocab_size": 61,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 40,
    "num_layers": 4,
    "num_decoder_layers": 4,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}
BART = {
    "vocab_size": 61,
    "d_model": 32,
    "encoder_layers": 4,
    "decoder_layers": 4,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": None,
}
CROSS = {"is_decoder": True, "add_cross_attention": True}
CLIP_TOWER = {
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 40,
}

FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("Bert", "ForSequenceClassification", SMALL),
    "bert-decoder-cross": ("Bert", "LMHeadModel", SMALL | CROSS),
    "roberta": ("Roberta", "ForSequenceClassification", SMALL),
    "xlm-roberta": ("XLMRoberta", "ForTokenClassification", SMALL),
    "albert": ("Albert", "ForMaskedLM", SMALL | {"embedding_size": 16, "num_hidden_groups": 2}),
    "distilbert": (
        "DistilBert",
        "ForMaskedLM",
        {"vocab_size": 61, "dim": 32, "n_layers": 4, "n_heads": 4, "hidden_dim": 40},
    ),
    "electra": ("Electra", "ForSequenceClassification", SMALL | {"embedding_size": 16}),
    "deberta-v2": (
        "DebertaV2",
        "ForSequenceClassification",
        SMALL
        | {
            "relative_attention": True,
            "pos_att_type": ["c2p", "p2c"],
            "max_relative_positions": 16,
            "position_biased_input": False,
        },
    ),
    "modernbert": (
        "ModernBert",
        "ForMaskedLM",
        SMALL
        | {"pad_token_id": 0, "eos_token_id": 2, "bos_token_id": 1, "cls_token_id": 1}
        | {"sep_token_id": 2, "local_attention": 4, "global_attn_every_n_layers": 2},
    ),
    "mpnet": ("MPNet", "ForMaskedLM", SMALL),
    "vit": ("ViT", "ForImageClassification", SMALL | {"image_size": 16, "patch_size": 8}),
    "gpt2": ("GPT2", "LMHeadModel", GPT2),
    "gpt2-cross": ("GPT2", "LMHeadModel", GPT2 | CROSS),
    "gpt-neox": ("GPTNeoX", "ForCausalLM", SMALL),
    "llama": ("Llama", "ForCausalLM", GROUPED),
    "mistral": ("Mistral", "ForCausalLM", GROUPED | {"sliding_window": 4}),
    "qwen2": ("Qwen2", "ForCausalLM", GROUPED),
    "qwen3": ("Qwen3", "ForCausalLM", GROUPED),
    "gemma": ("Gemma", "ForCausalLM", GROUPED),
    "opt": ("OPT", "ForCausalLM", SMALL | {"ffn_dim": 40, "word_embed_proj_dim": 32}),
    "bloom": (
        "Bloom",
        "ForCausalLM",
        {"vocab_size": 61, "hidden_size": 32, "n_layer": 4, "n_head": 4},
    ),
    "falcon": (
        "Falcon",
        "ForCausalLM",
        SMALL | {"new_decoder_architecture": True, "num_kv_heads": 2},
    ),
    "falcon-alibi": (
        "Falcon",
        "ForCausalLM",
        SMALL | {"alibi": True, "multi_query": False, "new_decoder_architecture": False},
    ),
    "t5": ("T5", "ForConditionalGeneration", T5),
    "mt5": ("MT5", "ForConditionalGeneration", T5),
    "bart": ("Bart", "ForConditionalGeneration", BART),
    "mbart": ("MBart", "ForConditionalGeneration", BART),
    "marian": ("Marian", "MTModel", BART),
    "pegasus": ("Pegasus", "ForConditionalGeneration", BART),
    "whisper": (
        "Whisper",
        "ForConditionalGeneration",
        BART
        | {"max_source_positions": 12, "max_target_positions": 32, "num_mel_bins": 8}
        | {"begin_suppress_tokens": None, "suppress_tokens": None},
    ),
    "clip": (
        "CLIP",
        "Model",
        {
            "text_config": CLIP_TOWER
            | {"vocab_size": 61, "max_position_embeddings": 16, "eos_token_id": 2},
            "vision_config": CLIP_TOWER | {"image_size": 16, "patch_size": 8},
            "projection_dim": 16,
        },
    ),
}


def build(family: str, *, attention: str | None = None, seed: int = 0, **changes: Any) -> Any:
    """A small model of the family, in evaluation mode, its heads all loud enough to matter."""
    name, head, settings = (FAMILIES | ODD)[family]
    transformers = importlib.import_module("transformers")
    prefix = "Marian" if name == "Marian" else name
    config = getattr(transformers, f"{prefix}Config")(**(settings | changes))
    kind: Callable[..., PreTrainedModel] = getattr(transformers, f"{name}{head}")
    torch.manual_seed(seed)
    model = kind._from_config(config, attn_implementation=attention) if attention else kind(config)
    return shake(model, seed).eval()


def skeleton(kind: str, layers: int = 4) -> PreTrainedModel:
    """The base model of any model type without weights: its own config, with a few layers."""
    from transformers import CONFIG_MAPPING, AutoModel, PreTrainedConfig

    def shorten(config: PreTrainedConfig) -> None:
        for name, value in list(vars(config).items()):
            if name in (*DEPTHS, "encoder_layers", "decoder_layers", "depth") and value:
                setattr(config, name, layers)
            elif isinstance(value, PreTrainedConfig):
                shorten(value)

    config = CONFIG_MAPPING[kind]()
    shorten(config)
    with torch.device("meta"):
        return AutoModel.from_config(config)


TOWER = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 20,
    "image_size": 16,
    "patch_size": 8,
}
T5GEMMA2 = GROUPED | {
    "sliding_window": 4,
    "layer_types": ["full_attention", "sliding_attention"] * 2,
    "query_pre_attn_scalar": 8,
}
FASTSPEECH2 = {
    "hidden_size": 24,
    "vocab_size": 61,
    "num_mel_bins": 8,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_linear_units": 16,
    "decoder_linear_units": 16,
    "duration_predictor_layers": 1,
    "energy_predictor_layers": 1,
    "pitch_predictor_layers": 1,
    "duration_predictor_channels": 8,
    "energy_predictor_channels": 8,
    "pitch_predictor_channels": 8,
    "speech_decoder_postnet_layers": 2,
    "speech_decoder_postnet_units": 8,
}
XCODEC = {
    "target_bandwidths": [1.0],
    "codebook_size": 16,
    "codebook_dim": 24,
    "acoustic_model_config": {
        "encoder_hidden_size": 4,
        "decoder_hidden_size": 16,
        "hidden_size": 8,
        "downsampling_ratios": [8, 5, 4, 2],
    },
    "semantic_model_config": TOWER
    | {"model_type": "hubert", "conv_dim": [8] * 7}
    | {"num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2},
}
SWIN = {
    "image_size": 32,
    "patch_size": 2,
    "embed_dim": 16,
    "depths": [2, 2],
    "num_heads": [2, 4],
    "window_size": 4,
}
BEIT = TOWER | {"num_attention_heads": 4, "image_size": 32}
ODD: dict[str, tuple[str, str, dict[str, Any]]] = {
    "swin": ("Swin", "ForImageClassification", SWIN),
    "swinv2": ("Swinv2", "ForImageClassification", SWIN),
    "swin2sr": ("Swin2SR", "Model", SWIN | {"patch_size": 1}),
    "donut-swin": ("DonutSwin", "Model", SWIN),
    "beit-relative": (
        "Beit",
        "ForImageClassification",
        BEIT | {"use_relative_position_bias": True},
    ),
    "beit-shared": (
        "Beit",
        "ForImageClassification",
        BEIT | {"use_shared_relative_position_bias": True},
    ),
    "data2vec-relative": (
        "Data2VecVision",
        "ForImageClassification",
        BEIT | {"use_relative_position_bias": True},
    ),
    "wavlm": (
        "WavLM",
        "Model",
        SMALL
        | {"num_hidden_layers": 2, "conv_dim": [8, 8], "conv_stride": [5, 2], "num_buckets": 8}
        | {"conv_kernel": [10, 3], "num_conv_pos_embeddings": 4, "max_bucket_distance": 16}
        | {"num_conv_pos_embedding_groups": 2, "num_feat_extract_layers": 2},
    ),
    "big-bird": (
        "BigBird",
        "ForSequenceClassification",
        SMALL | {"block_size": 2, "num_random_blocks": 1, "num_hidden_layers": 2},
    ),
    "zamba": (
        "Zamba",
        "ForCausalLM",
        SMALL
        | {"num_hidden_layers": 6, "num_key_value_heads": 4, "attn_layer_period": 2}
        | {"attn_layer_offset": 1, "n_mamba_heads": 2, "mamba_d_state": 4, "mamba_dt_rank": 4},
    ),
    "musicgen": (
        "Musicgen",
        "ForConditionalGeneration",
        {
            "text_encoder": {"model_type": "t5"} | T5,
            "audio_encoder": {"model_type": "encodec", "num_filters": 4, "hidden_size": 16}
            | {"codebook_dim": 16, "codebook_size": 32, "num_lstm_layers": 1}
            | {"upsampling_ratios": [2, 2], "target_bandwidths": [1.5]},
            "decoder": SMALL | {"ffn_dim": 40, "num_codebooks": 2, "num_hidden_layers": 2},
        },
    ),
    "luke": ("Luke", "Model", SMALL | {"entity_vocab_size": 20, "entity_emb_size": 16}),
    "mra": ("Mra", "Model", SMALL),
    "i-bert": ("IBert", "Model", SMALL),
    "fsmt": (
        "FSMT",
        "ForConditionalGeneration",
        {key: value for key, value in BART.items() if key != "vocab_size"}
        | {"langs": ["en", "de"], "src_vocab_size": 61, "tgt_vocab_size": 61},
    ),
    "olmo2": ("Olmo2", "ForCausalLM", GROUPED | {"num_hidden_layers": 3, "num_key_value_heads": 4}),
    "phi3": ("Phi3", "ForCausalLM", GROUPED | {"num_hidden_layers": 3, "pad_token_id": 0}),
    "bitnet": ("BitNet", "ForCausalLM", GROUPED | {"num_hidden_layers": 3}),
    "deepseek-v3": (
        "DeepseekV3",
        "ForCausalLM",
        {key: value for key, value in GROUPED.items() if key != "head_dim"}
        | {"num_hidden_layers": 3, "num_key_value_heads": 4, "q_lora_rank": 16, "kv_lora_rank": 16}
        | {"qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8, "n_group": 1}
        | {"topk_group": 1, "n_routed_experts": 2, "num_experts_per_tok": 1}
        | {"moe_intermediate_size": 16, "first_k_dense_replace": 2},
    ),
    "paligemma": (
        "PaliGemma",
        "ForConditionalGeneration",
        {
            "vision_config": {"model_type": "siglip_vision_model"} | TOWER,
            "text_config": {"model_type": "gemma"} | GROUPED | {"num_hidden_layers": 2},
            "projection_dim": 32,
            "image_token_index": 60,
        },
    ),
    "t5gemma2": (
        "T5Gemma2",
        "ForConditionalGeneration",
        {
            "encoder": {
                "text_config": T5GEMMA2,
                "vision_config": TOWER,
                "mm_tokens_per_image": 4,
                "image_token_index": 60,
            },
            "decoder": T5GEMMA2,
            "image_token_index": 60,
        },
    ),
    "cosmos3": (
        "Cosmos3Edge",
        "ForConditionalGeneration",
        {
            "text_config": GROUPED
            | {"rope_parameters": {"rope_theta": 1e4, "mrope_section": [2, 1, 1]}},
            "vision_config": {k: v for k, v in TOWER.items() if k != "image_size"},
        },
    ),
    "fastspeech2": ("FastSpeech2Conformer", "Model", FASTSPEECH2),
    "xcodec": ("Xcodec", "Model", XCODEC),
}
"""Models that once came out wrong, each in its way; not all of them can be worked on."""


def shake(model: PreTrainedModel, seed: int = 0) -> PreTrainedModel:
    """Weights of a trained model's size: fresh ones are so small that a lost head hardly shows."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.requires_grad:
                # sinusoidal positions are computed, not saved
                continue
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim >= 2:
                parameter.copy_(noise * parameter.shape[-1] ** -0.5)
            else:
                parameter.add_(0.1 * noise)
    return model


@contextmanager
def unchanged(model: PreTrainedModel) -> Generator[None]:
    """Fail when the model is not as it was: weights, config, mode, kind of attention, hooks."""
    before = _state(model)
    yield
    after = _state(model)
    assert before.keys() == after.keys(), before.keys() ^ after.keys()
    changed = [name for name, value in before.items() if not _same(value, after[name])]
    assert not changed, changed


def _state(model: PreTrainedModel) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path, module in model.named_modules():
        found[f"{path} is"] = (id(module), type(module), module.training)
        for name, value in vars(module).items():
            if name.endswith("_hooks"):
                found[f"{path} {name}"] = list(value or ())
            elif isinstance(value, (bool, int, float, str)):
                found[f"{path} {name}"] = value
        config = getattr(module, "config", None)
        if isinstance(config, PreTrainedConfig):
            found[f"{path} config"] = (config.to_dict(), config._attn_implementation)
    for name, value in (*model.named_parameters(), *model.named_buffers()):
        found[name] = value.detach().clone()
        found[f"{name} learns"] = (id(value), value.requires_grad, value.grad is None)
    return found


def _same(left: Any, right: Any) -> bool:
    return torch.equal(left, right) if torch.is_tensor(left) else left == right


def attention_of(family: str) -> tuple[str, ...]:
    """The attention implementations that transformers has for the family."""
    return ("eager",) if family in ("deberta-v2", "mpnet", "bloom") else ("eager", "sdpa")


PATTERNS = ("uneven", "whole groups", "alternate layers emptied", "all emptied")


def masks(layout: Layout) -> dict[str, Mask]:
    """The four patterns of removal, for any layout."""

    def keep(condition: Callable[..., bool]) -> Mask:
        return Mask(layout, frozenset(head for head in layout if condition(head)))

    def group(head: Any) -> int:
        stack = layout[head.stack]
        return head.index * stack.groups[head.layer] // stack.heads[head.layer]

    # as many in each group, so that it is uneven between layers and allowed in grouped attention
    return {
        "uneven": keep(lambda h: h.layer % 2 == 1 or h.index % 2 == 1),
        "whole groups": keep(lambda h: group(h) != h.layer % 2),
        "alternate layers emptied": keep(lambda h: h.layer % 2 == 1),
        "all emptied": keep(lambda h: False),
    }


def mixed(layout: Layout) -> Mask:
    """Every kind of removal in one model, layer by layer: emptied, uneven, a group gone, whole."""

    def stays(head: Any) -> bool:
        stack = layout[head.stack]
        group = head.index * stack.groups[head.layer] // stack.heads[head.layer]
        return (False, head.index % 2 == 1, group != 0, True)[head.layer % 4]

    return Mask(layout, frozenset(head for head in layout if stays(head)))


@cache
def removed(family: str, pattern: str, kind: str | None = None) -> tuple[Any, Mask, Any]:
    """(model, mask, removed) for a pattern or "mixed", made once: leave them as they are."""
    from headcount.models.find import layout
    from headcount.models.remove import remove

    model = build(family, attention=kind or attention_of(family)[-1])
    mask = mixed(layout(model)) if pattern == "mixed" else masks(layout(model))[pattern]
    return model, mask, remove(model, mask)


DEPTHS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers")


def shallow(family: str, layers: int) -> dict[str, Any]:
    """The changes to `build` that give a family this many layers."""
    known = FAMILIES[family][2]
    names = (*DEPTHS, "encoder_layers", "decoder_layers")
    changes: dict[str, Any] = {name: layers for name in names if name in known}
    for tower in ("text_config", "vision_config"):
        if tower in known:
            changes[tower] = known[tower] | {"num_hidden_layers": layers}
    return changes
