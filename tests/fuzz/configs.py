"""Whole `config.json` files, mutated: every key, others' keys, and files that are no config."""

from __future__ import annotations

import copy
import json
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from fuzz import damage
from fuzz.trees import ODD, Gentle, damaged, dumped

MODEL_TYPES: tuple[Any, ...] = (
    "bert", "roberta", "distilbert", "albert", "gpt2", "t5", "bart", "llama", "mixtral", "mamba",
    "vit", "clip", "whisper", "encoder-decoder", "vision-encoder-decoder", "musicgen", "rag",
    "perceiver", "longformer", "big_bird", "reformer", "funnel", "deberta-v2", "luke",
    "timm_wrapper", "nothing", "Bert", "bert ", "", "../bert", None, 5, ["bert"], {"bert": 1}, True,
)  # fmt: skip
CLASSES: tuple[Any, ...] = (
    ["BertModel"], ["BertForMaskedLM"], ["GPT2LMHeadModel"], ["T5ForConditionalGeneration"],
    ["ViTModel"], ["BertConfig"], ["BertTokenizer"], ["Trainer"], ["AutoModel"], ["pipeline"],
    ["PreTrainedModel"], ["PrunedBertModel"], ["__doc__"], ["os.system"], ["nothing", "BertModel"],
    [], [None], [5], [[]], [{}], ["\x1b[2J"], [""], None, "BertModel", 5, {"a": "BertModel"}, True,
)  # fmt: skip
QUANTIZED: tuple[Any, ...] = (
    *({"quant_method": name, "bits": 4, "group_size": 128} for name in (
        "gptq", "awq", "bitsandbytes", "aqlm", "quanto", "eetq", "hqq", "compressed-tensors",
        "fbgemm_fp8", "torchao", "bitnet", "vptq", "spqr", "fp8", "higgs", "auto-round", "mxfp4",
        "finegrained_fp8", "quark", "fp_quant", "sinq", "metal", "four_over_six", "nothing", "", 5,
        None,
    )),
    {"load_in_8bit": True}, {"load_in_4bit": True, "bnb_4bit_quant_type": "x"}, {}, [], [{}], "x",
    5, True, None, {"quant_method": "gptq", "bits": "x"}, {"quant_method": ["gptq"]},
    {"quant_method": "bitsandbytes", "load_in_8bit": True, "llm_int8_threshold": "x"},
)  # fmt: skip
ADDED: dict[str, tuple[Any, ...]] = {
    "quantization_config": QUANTIZED,
    "compression_config": QUANTIZED[:8],
    "dtype": ("float16", "bfloat16", "float64", "nothing", "int8", "torch.float16", "load", "nn",
              "Tensor", "auto", "float8_e4m3fn", "complex64", 5, None, [], {}, {"": "float16"}),
    "torch_dtype": ("float16", "nothing", "torch.int8", 5, [], {"x": 1}),
    "attn_implementation": ("eager", "sdpa", "flash_attention_2", "flex_attention", "nothing", 5,
                            None, {}, {"": "eager"}, [], "a/b", "a/b:c", "paged|sdpa"),
    "_attn_implementation": ("flash_attention_3", "nothing", 5, [], {"x": {}}, "a/b"),
    "_attn_implementation_internal": ("flash_attention_2", "nothing", 5),
    "experts_implementation": ("eager", "nothing", 5, "a/b"),
    "auto_map": ({"AutoModel": "code.Model"}, {"AutoConfig": "code.Config"}, 5, [], "x",
                 {"AutoConfig": "a/b--code.Config"}, {"AutoModel": 5}, {"AutoTokenizer": ["a"]}),
    "pruned_heads": ({"0": [0]}, {"0": [9]}, {"9": [0]}, {"x": [0]}, {"0": "x"}, [0], 5, "x",
                     {"0": [0, 1], "1": [0, 1]}, {"-1": [0]}, {"0": [[]]}, {"0": None}),
    "headcount": ({}, [], 5, "x", {"version": 1, "sites": []}, {"version": 2, "sites": [{}]}),
    "is_decoder": (True, "x", 5), "add_cross_attention": (True, "x"),
    "is_encoder_decoder": (True, "x", []), "tie_word_embeddings": (False, "x"),
    "tie_encoder_decoder": (True,), "return_dict": (False, "x"), "use_return_dict": (False, 5),
    "output_attentions": (True, "x"), "output_hidden_states": (True, "x"),
    "torchscript": (True,), "use_cache": (False, "x"), "chunk_size_feed_forward": (1, 3, -1, "x"),
    "problem_type": ("regression", "multi_label_classification", "x", 5),
    "num_labels": (0, 1, 3, -1, 10**9, "2", None, [], 2.5),
    "pad_token_id": (9999, -5, "x", [], 2.5),
    "id2label": ({}, {"0": "a"}, {"x": "a"}, {"0": "a", "5": "b"}, [], ["a", "b"], 5, "x",
                 {"0": []}, {"0": 1, "1": None}, {"0": "a", "1": "a"}, {"-1": "a", "0": "b"}),
    "label2id": ({}, {"a": 0}, {"a": "x"}, [], 5, {"a": 0, "b": 0}, {"a": []}),
    "layer_types": (["full_attention"], ["x", "y"], 5, [None, None]),
    "text_config": ({}, {"model_type": "bert"}, 5, {"model_type": "nothing"}, []),
    "vision_config": ({}, {"model_type": "vit"}, 5), "encoder": ({"model_type": "bert"}, {}, 5),
    "rope_scaling": ({"type": "linear", "factor": 2}, {"rope_type": "nothing"}, 5, [], {}),
    "rope_parameters": ({"rope_type": "yarn"}, {"rope_type": "x"}, 5, {"full_attention": 5}),
    "transformers_version": ("4.0", "99.0", 5, None, [], "x"), "tokenizer_class": ("x", 5, [], ""),
    "_name_or_path": ("bert-base", "/dev/zero", 5, [], "\x00"), "name_or_path": ("x", 5),
    "_commit_hash": ("x", 5), "generation_config": ({}, 5), "max_length": (5, "x", -1),
    "num_beams": (0, 4, "x"), "torch": ({},), "device_map": ("auto", 5), "base_model_tp_plan": (5,),
    "gradient_checkpointing": (True,), "position_embedding_type": ("relative_key", "x", 5),
    "attribute_map": ({"hidden_size": "x"}, 5), "sub_configs": ({"a": {}}, 5),
    "save_pretrained": (5,),
    "to_dict": (5,), "model_type_": ("x",), "__class__": ("x",), "__dict__": ({},), "keys": (5,),
    "get_text_config": (5,), "per_layer_config": (5,), "classifier_dropout": (2.0, "x", -1),
}  # fmt: skip
"""Keys that may stand in any config.json, with what others wrote there or might."""
SIZES = (0, -1, 1, 3, 7, 10**5, 2**31, 2**40, 2**63, 10**30, 1.5, 2.0, "8", None, [8], [8, 8], True)
NO_CONFIGS = (
    "null", "[]", "5", '"bert"', "true", "{", "", "{}", '{"model_type": "bert"}', "NaN", "[[[]]]",
    "[" * 20_000 + "]" * 20_000, '{"model_type": "bert", "model_type": "gpt2"}', "\ufeff{}",
    '{"architectures": ["BertModel"]}', '{"hidden_size": 1e999, "model_type": "bert"}', "\x00",
)  # fmt: skip


@cache
def models() -> list[dict[str, bytes]]:
    """The files of tiny classifiers with a tokenizer each."""
    import torch
    import transformers as hf

    from fuzz.readers import tokenizer_files
    from headcount.heads import Mask
    from headcount.models.find import layout
    from headcount.tasks.loading import hush

    hush()
    tiny = {"vocab_size": 20, "num_labels": 2, "pad_token_id": 0}
    wide = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
            "intermediate_size": 8, "max_position_embeddings": 16}  # fmt: skip
    made = (
        hf.BertForSequenceClassification(hf.BertConfig(**tiny, **wide)),
        hf.DistilBertForSequenceClassification(hf.DistilBertConfig(
            **tiny, dim=8, n_layers=2, n_heads=2, hidden_dim=8, max_position_embeddings=16)),
        hf.GPT2ForSequenceClassification(hf.GPT2Config(
            **tiny, n_embd=8, n_layer=2, n_head=2, n_positions=16, bos_token_id=2,
            eos_token_id=3)),
        hf.LlamaForSequenceClassification(hf.LlamaConfig(
            **tiny, **wide, num_key_value_heads=1, bos_token_id=2, eos_token_id=3)),
        hf.BartForSequenceClassification(hf.BartConfig(
            **tiny, d_model=8, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=8, decoder_ffn_dim=8,
            max_position_embeddings=16, bos_token_id=2, eos_token_id=3,
            decoder_start_token_id=3, forced_eos_token_id=3)),
    )  # fmt: skip
    found = []
    for number, model in enumerate(made):
        with torch.random.fork_rng(), tempfile.TemporaryDirectory() as folder:
            torch.manual_seed(number)
            model.init_weights()
            model.save_pretrained(folder)
            files = {each.name: each.read_bytes() for each in Path(folder).iterdir()}
            heads = layout(model)
            mask = json.dumps(Mask.full(heads).drop([list(heads)[-1]]).to_json())
            found.append(files | tokenizer_files() | {"../mask.json": mask.encode()})
    return found


def mutated(config: dict[str, Any], rng: Random) -> bytes:
    """A config.json with one to four things changed, or something else altogether."""
    if isinstance(rng, Gentle):
        return json.dumps(config).encode()
    if rng.random() < 0.04:
        return rng.choice(NO_CONFIGS).encode("utf-8", "surrogatepass")
    if rng.random() < 0.04:
        return damage.json_file(config, rng)
    tree = copy.deepcopy(config)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        _change(tree, rng)
    return dumped(tree, rng).encode("utf-8", "surrogatepass")


def _change(tree: dict[str, Any], rng: Random) -> None:
    what = rng.randrange(12)
    key = rng.choice(list(tree) or ["x"])
    numbers = [name for name, value in tree.items() if type(value) is int] or [key]
    if what == 0:
        tree["model_type"] = copy.deepcopy(rng.choice(MODEL_TYPES))
    elif what == 1:
        tree["architectures"] = copy.deepcopy(rng.choice(CLASSES))
    elif what == 2:
        tree["quantization_config"] = copy.deepcopy(rng.choice(QUANTIZED))
    elif what <= 5:
        key = rng.choice(list(ADDED))
        tree[key] = copy.deepcopy(rng.choice(ADDED[key]))
    elif what <= 8:
        tree[rng.choice(numbers)] = copy.deepcopy(rng.choice(SIZES))
    elif what == 9:
        tree.pop(key, None)
    elif what == 10:
        tree[key] = copy.deepcopy(rng.choice(ODD))
    else:
        changed = damaged(tree, rng)
        if isinstance(changed, dict):
            tree.clear()
            tree.update(changed)


def write_config(folder: Path, rng: Random) -> Path:
    """A model folder with a mutated config.json, and rows to score."""
    files = dict(models()[0 if isinstance(rng, Gentle) else rng.randrange(len(models()))])
    files["config.json"] = mutated(json.loads(files["config.json"]), rng)
    model = folder / "model"
    model.mkdir()
    for name, data in files.items():
        (model / name).write_bytes(data)
    (folder / "dev.csv").write_text("text,label\n" + "the small cat,0\ncats,1\n" * 3)
    return model


def read_config(path: Path) -> None:
    """What inspect, evaluate, remove and prune do with it; each must refuse it by itself."""
    from headcount.base.errors import HeadcountError

    refusals = []
    for line in lines(path):
        try:
            _run(line)
        except HeadcountError as error:
            refusals.append(error)
    if refusals:
        raise refusals[0]


def lines(path: Path) -> list[list[str]]:
    """The command lines that a model folder is tried with."""
    model, out = str(path), path.parent
    rows = ["--task", "classification", "--data", str(out / "dev.csv"), "--columns", "text",
            "--label", "label"]  # fmt: skip
    return [
        ["inspect", model, "--json"],
        ["evaluate", model, *rows, "--json"],
        ["remove", model, "--keep", str(out / "mask.json"), "--out", str(out / "less"), "--json"],
        ["prune", model, "--method", "random", "--ratio", "0.5", *rows, "--baseline", "0",
         "--out", str(out / "small"), "--json"],
    ]  # fmt: skip


def _run(line: list[str]) -> None:
    import contextlib
    import io

    from cyclopts import CycloptsError

    from headcount.cli.main import CommandLine, run

    with contextlib.redirect_stdout(io.StringIO()), suppress(CycloptsError):
        run(CommandLine.read(line))
