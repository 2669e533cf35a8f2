"""How many of the model types in the installed transformers headcount can work on.

    python benchmarks/coverage/model_types.py [--json] [--only bert,gpt2] [--list] [--twice]
        [--log FILE] [--part 1/2]

Each type is built small with random weights; half its heads are removed, and the result is
compared with the masked model on inputs that the removal itself has not seen. "wrong" must be 0:
removals that were accepted and differ, or cut a layer whose masking changes nothing in the
answers (so that nothing was verified), or models that are not as they were afterwards. A type gets
30 seconds of processor time, so that a busy machine changes no outcome; `--twice` tries each type
twice and counts those whose two outcomes are not the same.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import inspect
import itertools
import json
import os
import random
import signal
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "critical"

import numpy as np
import torch
import transformers
from transformers import CONFIG_MAPPING, MODEL_MAPPING, PreTrainedConfig

from headcount.base.errors import HeadcountError, UnsupportedError
from headcount.heads import Head, Layout, Mask
from headcount.models.find import layout
from headcount.models.gates import gate
from headcount.models.probe import relative_difference
from headcount.models.probes import ModelProbe, find_probes
from headcount.models.remove import remove
from headcount.models.sites import Site, find_sites
from headcount.models.unread import describe, find_unread

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from models.zoo import unchanged

SECONDS = 30
LARGEST = 30_000_000
WIDTHS = dict.fromkeys(
    (
        "hidden_size",
        "d_model",
        "n_embd",
        "dim",
        "embed_dim",
        "emb_dim",
        "word_embed_proj_dim",
        "hidden_dim",
    ),
    32,
)
HEADS = dict.fromkeys(
    (
        "num_attention_heads",
        "n_head",
        "n_heads",
        "num_heads",
        "encoder_attention_heads",
        "decoder_attention_heads",
    ),
    4,
)
GROUPS = dict.fromkeys(("num_key_value_heads", "num_kv_heads"), 2)
LAYERS = dict.fromkeys(
    (
        "num_hidden_layers",
        "n_layer",
        "n_layers",
        "num_layers",
        "encoder_layers",
        "decoder_layers",
        "num_decoder_layers",
        "depth",
    ),
    2,
)
OTHERS = dict.fromkeys(
    ("intermediate_size", "d_ff", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_inner"), 40
)
OTHERS |= {"vocab_size": 120, "head_dim": 8, "d_kv": 8, "image_size": 32, "patch_size": 8}
OTHERS |= {
    "num_local_experts": 2,
    "num_experts": 2,
    "n_routed_experts": 2,
    "num_experts_per_tok": 1,
}
OTHERS |= {"block_size": 2, "num_random_blocks": 1}
OTHERS |= {"max_position_embeddings": 64, "moe_intermediate_size": 16, "embedding_size": 16}
# the defaults of many lie beyond a small vocabulary
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
TOKENS |= {"sep_token_id": 2, "cls_token_id": 1, "mask_token_id": 3}
# latent attention, mixtures, tables and codebooks
OTHERS |= {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8}
OTHERS |= {"v_head_dim": 8, "index_head_dim": 8, "index_n_heads": 4, "index_topk": 4, "n_group": 1}
OTHERS |= {"topk_group": 1, "entity_vocab_size": 20, "codebook_size": 32, "codebook_dim": 16}
OTHERS |= {"max_2d_position_embeddings": 64, "rotary_dim": 4, "upsample_groups": 4}
OTHERS |= {"vocab_size_per_layer_input": 120, "hidden_size_per_layer_input": 8}
OTHERS |= {"num_kv_shared_layers": 0, "n_shared_experts": 1, "vocabulary_map": {"<image>": 4}}
SMALL = WIDTHS | HEADS | GROUPS | LAYERS | OTHERS | TOKENS
NEEDED = ("num_key_value_heads", "prediction_length", "vocab_size", "head_dim", "d_kv")
NEEDED += ("pad_token_id", "mask_token_id")
NEEDED += ("n_routed_experts", "n_shared_experts", "num_experts_per_tok")
"""What some configs have no default for."""


def without(settings: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in names}


RESNET = {
    "model_type": "resnet",
    "embedding_size": 8,
    "hidden_sizes": [8, 8, 16, 16],
    "depths": [1, 1, 1, 1],
    "layer_type": "basic",
    "out_features": ["stage2", "stage3", "stage4"],
}
STAGES = {"depths": [1, 1, 2, 1], "num_heads": [2, 4, 4, 8], "embed_dim": 16, "window_size": 4}
BACKBONE = {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None}
BACKBONE |= {"backbone_config": RESNET, "backbone_kwargs": None}
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
MROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
MORE_LAYERS = dict.fromkeys(LAYERS, 4)
MIXED = {"attn_layer_period": 2, "attn_layer_offset": 1, "attn_layer_indices": [1, 3]}
MIXED |= {"full_attention_interval": 2, "num_hidden_layers": 6}
SERIES = {"prediction_length": 4, "context_length": 8, "lags_sequence": [1, 2]}
VARIANTS: list[dict[str, Any]] = [
    SMALL,
    SMALL | {"rope_parameters": MROPE, "rope_scaling": MROPE},
    without(SMALL, "head_dim", "d_kv"),
    without(SMALL, "head_dim", *GROUPS),
    SMALL | dict.fromkeys(GROUPS, 4),
    SMALL | MORE_LAYERS | MIXED,
    SMALL | MORE_LAYERS | MIXED | {"layer_types": ["linear_attention", "full_attention"] * 3},
    SMALL | MORE_LAYERS | {"layer_types": ["sliding_attention", "full_attention"] * 2},
    without(SMALL, *LAYERS) | {"num_hidden_layers": 6},
    SMALL | BACKBONE,
    SMALL | STAGES,
    without(SMALL, "image_size", "patch_size"),
    without(SMALL, *WIDTHS, "embedding_size", "intermediate_size"),
    LAYERS | {"vocab_size": 120},
    SMALL | SERIES,
    without(SMALL, *TOKENS),
    SMALL | {"rope_parameters": ROPE},
    SMALL
    | {"layer_types": ["sliding_attention", "full_attention"]}
    | {"rope_parameters": dict.fromkeys(("sliding_attention", "full_attention"), ROPE)},
    SMALL | {"layer_types": ["conv", "full_attention"]},
    SMALL | dict.fromkeys(WIDTHS, 64),
]
"""What is tried in turn, until a model runs and all its heads are reached."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--only", help="comma-separated model types")
    parser.add_argument("--list", action="store_true", help="name every type under its outcome")
    parser.add_argument("--twice", action="store_true", help="try each type twice and compare")
    parser.add_argument("--log", type=Path, help="a line for each type; those in it are not tried")
    parser.add_argument("--part", default="1/1", help="i/n: the ith of n processes with one log")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    kinds = options.only.split(",") if options.only else sorted(CONFIG_MAPPING)
    part, parts = map(int, options.part.split("/"))
    start = len(kinds) * (part - 1) // parts
    outcomes: dict[str, tuple[str, str]] = {}
    different: list[str] = []
    for done, kind in enumerate(kinds[start:] + kinds[:start], 1):
        outcomes |= read_log(options.log)
        if kind in outcomes:
            continue
        outcomes[kind] = outcome_of(kind)
        if options.twice and outcome_of(kind) != outcomes[kind]:
            different.append(kind)
        if options.log:
            with options.log.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps([kind, *outcomes[kind]]) + "\n")
        if sys.stderr.isatty():
            print(f"\r{done}/{len(kinds)} {kind:40}", end="", file=sys.stderr)
    outcomes = {kind: outcomes[kind] for kind in kinds}
    counts = Counter(outcome for outcome, _ in outcomes.values())
    if options.json:
        by = {o: {k: why for k, (got, why) in outcomes.items() if got == o} for o in counts}
        results = {"transformers": transformers.__version__, "counts": counts, "types": by}
        print(json.dumps(results | ({"different": different} if options.twice else {})))
    else:
        report(counts, outcomes, options.list or bool(options.only))
        if options.twice:
            print(f"different        {len(different):4}  when tried again {' '.join(different)}")
    return 1 if counts["wrong"] or different else 0


def read_log(log: Path | None) -> dict[str, tuple[str, str]]:
    """What this process and others have found; a line that is not whole is not there."""
    lines = log.read_text(encoding="utf-8").splitlines() if log and log.is_file() else []
    whole = [json.loads(line) for line in lines if line.startswith("[") and line.endswith("]")]
    return {kind: (outcome, why) for kind, outcome, why in whole}


def report(counts: Counter[str], outcomes: dict[str, tuple[str, str]], names: bool) -> None:
    with_heads = counts["removed exactly"] + counts["refused"] + counts["wrong"]
    print(f"transformers {transformers.__version__}: {len(outcomes)} model types")
    print(f"found            {with_heads:4}  heads found by structure")
    print(f"removed exactly  {counts['removed exactly']:4}  checked on inputs removal has not seen")
    print(f"refused          {counts['refused']:4}  with the reason")
    print(f"wrong            {counts['wrong']:4}")
    print(f"no heads found   {counts['no heads found']:4}  convolutions, state spaces, other kinds")
    print(f"not a model      {counts['not a model']:4}  parts of other models, no AutoModel class")
    print(f"not tried        {counts['not tried']:4}  not built small, or no probe input known")
    for outcome in dict.fromkeys(got for got, _ in outcomes.values()) if names else ():
        print(f"\n{outcome}")
        for kind, (got, why) in outcomes.items():
            if got == outcome:
                print(f"  {kind}" + (f": {why}" if why else ""))


def outcome_of(kind: str) -> tuple[str, str]:
    """(outcome, why) for one model type."""
    signal.signal(signal.SIGPROF, _too_slow)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        seed()
        model = build(kind)
        if isinstance(model, str):
            return model, ""
        sites = find_sites(model)
        if not sites:
            return "no heads found", "; ".join(describe(find_unread(model, [])))
        try:
            find_probes(model, sites)
        except UnsupportedError as error:
            return "not tried", str(error)
        outcome = try_removal(model)
        return try_removal(louder(model)) if "changes nothing" in outcome[1] else outcome
    except TooSlow:
        return "not tried", f"not done in {SECONDS} s of processor time"
    except Exception as error:
        return "not tried", " ".join(f"{type(error).__name__}: {error}".split())[:160]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


class TooSlow(BaseException):
    """Nothing on the way takes it for an error of the model."""


def _too_slow(*_: Any) -> None:
    raise TooSlow


def seed() -> None:
    """Some models draw numbers when they are built, others whenever they run."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)


def answers(
    model: Any, probes: list[ModelProbe], mask: Mask | None = None, dtype: Any = None
) -> list[torch.Tensor]:
    """The model's answers, masked or not, always from the same random numbers."""
    seed()
    with gate(model, mask) if mask is not None else contextlib.nullcontext():
        return [answer for probe in probes for answer in probe.run(model, dtype=dtype)]


def try_removal(model: Any) -> tuple[str, str]:
    """Remove half the heads and compare with the masked model on other inputs."""
    try:
        with unchanged(model):
            full = layout(model)
            mask = half_of(full)
            try:
                small = remove(model, mask)
            except HeadcountError as error:
                return "refused", str(error)
            inputs = list(find_probes(model, find_sites(model), seed=11))
            difference = relative_difference(answers(model, inputs, mask), answers(small, inputs))
            if difference > 1e-4:  # rounding may choose other boxes, so it must be equal in float64
                masked, removed = (copy.deepcopy(part).double() for part in (model, small))
                with contextlib.suppress(RuntimeError):  # some do not run in float64
                    expected = answers(masked, inputs, mask, torch.float64)
                    got = answers(removed, inputs, dtype=torch.float64)
                    difference = relative_difference(expected, got)
            silent = [layer for layer in cut_layers(mask) if not is_heard(model, inputs, layer)]
    except AssertionError as error:
        return "wrong", f"the model is not as it was: {error}"[:160]
    if difference > 1e-4:
        return "wrong", f"differs by {difference:.1g}"
    if silent:
        return "wrong", f"masking {silent[0][0]} layer {silent[0][1]} changes nothing"
    return "removed exactly", f"not understood: {'; '.join(full.unread)}" if full.unread else ""


def cut_layers(mask: Mask) -> list[tuple[str, int, Mask]]:
    """(stack, layer, the mask's part there) for every layer that loses heads."""
    full = Mask.full(mask.layout)
    parts = [
        (stack, layer, full.drop(head for head in mask.dropped if head[:2] == (stack, layer)))
        for stack, layer, _ in mask.layout.layers()
    ]
    return [part for part in parts if part[2] != full]


def is_heard(model: Any, inputs: list[ModelProbe], layer: tuple[str, int, Mask]) -> bool:
    """Whether masking one layer's heads alone changes the answers."""
    return relative_difference(answers(model, inputs), answers(model, inputs, layer[2])) > 1e-6


def half_of(full: Layout) -> Mask:
    """Every other key-value group; in layers with one group, every other head."""

    def stays(head: Head) -> bool:
        stack = full[head.stack]
        heads, groups = stack.heads[head.layer], stack.groups[head.layer]
        group = head.index * groups // heads
        return (group if groups > 1 else head.index) % 2 == head.layer % 2

    return Mask(full, frozenset(head for head in full if stays(head)))


def build(kind: str) -> Any:
    """A small model of this type that runs, else any small one; or the reason why there is none."""
    config_class = CONFIG_MAPPING[kind]
    if config_class not in MODEL_MAPPING:
        return "not a model"
    mapped = MODEL_MAPPING[config_class]
    model_class = mapped[0] if isinstance(mapped, (tuple, list)) else mapped
    first: Any = None
    tried: list[dict[str, Any]] = []
    for settings, attempt in itertools.product(VARIANTS, (rebuilt, shrunk)):
        if first is not None and not find_sites(first) and not find_unread(first, []):
            break  # it has no attention
        with contextlib.suppress(Exception):
            config = attempt(config_class, copy.deepcopy(settings))  # some change what they get
            if config.to_dict() in tried:
                continue
            tried.append(config.to_dict())
            with torch.device("meta"):
                size = sum(p.numel() for p in model_class(config).parameters())
            if size > LARGEST:
                continue
            seed()
            model = shake(model_class(config)).eval()
            first = model if first is None else first
            sites = find_sites(model)
            if sites and is_reached(model, sites):
                return model
    return "not tried" if first is None else first


def is_reached(model: Any, sites: list[Site]) -> bool:
    """Whether inputs are known that reach all its heads."""
    paths = {path for site in sites for path, _ in site.places}
    reached = [set(probe.ran) for probe in find_probes(model, sites)]
    return paths <= set().union(*reached)


def rebuilt(config_class: type[PreTrainedConfig], settings: dict[str, Any]) -> PreTrainedConfig:
    """The config made anew from small numbers, so that what depends on them follows."""
    full = config_class()
    names = set(inspect.signature(config_class.__init__).parameters) | set(vars(full))
    given = {name: value for name, value in settings.items() if fits(full, name, value, names)}
    for name, part in vars(full).items():
        if isinstance(part, PreTrainedConfig) and name not in given:
            given[name] = rebuilt(type(part), settings).to_dict()
    return config_class(**given)


def shrunk(config_class: type[PreTrainedConfig], settings: dict[str, Any]) -> PreTrainedConfig:
    """The default config with small numbers written over it."""
    config = config_class()
    for part in [config, *(p for p in vars(config).values() if isinstance(p, PreTrainedConfig))]:
        for name, value in settings.items():
            if fits(part, name, value, set(vars(part))):
                with contextlib.suppress(Exception):
                    setattr(part, name, value)
    return config


def fits(config: PreTrainedConfig, name: str, value: object, names: set[str]) -> bool:
    """Whether a config has this setting, of this kind."""
    if name not in names:
        return False
    try:
        default = getattr(config, name, None)
    except AttributeError:
        return False  # every layer has its own
    if isinstance(value, bool) or not isinstance(value, int):
        return True
    if default is None:
        return name in NEEDED
    return isinstance(default, int) and not isinstance(default, bool)


def shake(model: Any) -> Any:
    """Weights of a trained model's size: fresh ones are so small that a lost head hardly shows."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad and parameter.ndim >= 2 and parameter.numel():
                parameter.normal_(0, parameter[0].numel() ** -0.5)
            elif parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def louder(model: Any) -> Any:
    """A model whose convolutions keep the size of what they get, where a signal died out."""
    model = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad and parameter.ndim > 2:
                parameter.mul_((parameter[0].numel() / parameter.shape[-1]) ** 0.5)
    return model


if __name__ == "__main__":
    sys.exit(main())
