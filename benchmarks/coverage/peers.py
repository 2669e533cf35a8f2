"""What other tools do when they are asked for heads alone, each in a process of its own.

    python benchmarks/coverage/peers.py [NAME…] [--python NAME=PYTHON …]

The model is a BERT of 4 layers × 4 heads with random weights; every tool is asked to leave two
heads in each layer, as its own documentation says. TextPruner wants another transformers than the
rest: `--python textpruner=PYTHON` says which Python has it. Where a package is missing, the table
says what to install. `loads again` is `from_pretrained`, or `hc.load`, from the folder that
`save_pretrained` wrote, with the same answers as before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from importlib import metadata
from typing import Any

LAYERS, HEADS, WIDE = 4, 4, 64
COLUMNS = ("peer", "version", "asked", "got", "loads again")
SECONDS = 900


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PEERS)}")
    parser.add_argument("--python", nargs="+", action="extend", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--try", dest="only", choices=PEERS, help="what the processes run")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(tried(options.only)))
        return 0
    pythons = dict(pair.split("=", 1) for pair in options.python)
    if unknown := {*options.names, *pythons} - set(PEERS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    rows = [dict(zip(COLUMNS, COLUMNS, strict=True)), dict.fromkeys(COLUMNS, "---")]
    for name in options.names or PEERS:
        rows += in_a_process(name, pythons.get(name, sys.executable))
    for row in rows:
        print(f"| {' | '.join(row.get(column, '–') for column in COLUMNS)} |")
    return 0


def in_a_process(name: str, python: str) -> list[dict[str, str]]:
    command = [python, __file__, "--try", name]
    quiet = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, env=quiet, check=True
        )
    except subprocess.TimeoutExpired:
        return [{"peer": name, "got": f"not done after {SECONDS} s"}]
    except subprocess.CalledProcessError as error:
        return [{"peer": name, "got": said(error.stderr.strip().splitlines()[-1])}]
    return json.loads(done.stdout.splitlines()[-1])


def tried(name: str) -> list[dict[str, str]]:
    package, install, attempt = PEERS[name]
    warnings.simplefilter("ignore")
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:
        return [{"peer": name, "got": f"not here: pip install {install}"}]
    if package != "transformers":
        version += f" (transformers {metadata.version('transformers')})"
    return [{"peer": name, "version": version, **row} for row in attempt()]


def bert() -> Any:
    import torch
    from transformers import BertConfig, BertModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=99,
        hidden_size=WIDE,
        intermediate_size=96,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        attn_implementation="eager",
    )
    return BertModel(config).eval()


def answers(model: Any) -> Any:
    import torch

    with torch.no_grad():
        return model(input_ids=torch.arange(5, 21).reshape(2, 8)).last_hidden_state


def widths(model: Any) -> str:
    """Heads in each layer, from the width of its queries, and the hidden size if that changed."""
    layers = [layer.attention for layer in model.encoder.layer]
    heads = [layer.self.query.out_features * HEADS / WIDE for layer in layers]
    hidden = layers[0].output.dense.out_features
    text = f"{', '.join(f'{count:g}' for count in heads)} heads"
    return text if hidden == WIDE else f"{text}; hidden size {hidden} of {WIDE}"


def again(model: Any, load: Any) -> str:
    import torch

    try:
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            same = torch.allclose(answers(load(folder).eval()), answers(model), atol=1e-5)
    except Exception as error:
        return f"no: {said(error)}"
    return "yes" if same else "no: it answers differently"


def said(error: object) -> str:
    kind = f"{type(error).__name__}: " if isinstance(error, Exception) else ""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = f"{kind}{lines[0] if lines else ''}".replace("|", "/")
    return text if len(text) <= 100 else f"{text[:99]}…"


def try_headcount() -> list[dict[str, str]]:
    import headcount as hc

    rows = []
    for counts in ("2222", "4201"):
        model = bert()
        small = hc.remove(model, hc.Mask.parse(counts, hc.layout(model)))
        got = ", ".join(str(count) for _, _, count in hc.layout(small).layers())
        row = {"asked": f"{', '.join(counts)} heads", "got": f"{got} heads"}
        rows.append({**row, "loads again": again(small, hc.load)})
    return rows


def try_transformers() -> list[dict[str, str]]:
    import torch

    model = bert()
    half = {layer: [0, 1] for layer in range(LAYERS)}
    try:
        model.prune_heads(half)
        cut = {"got": widths(model), "loads again": again(model, type(model).from_pretrained)}
    except Exception as error:
        cut = {"got": said(error)}
    model, ids = bert(), torch.arange(5, 13)[None]
    with torch.no_grad():
        masked = model(ids, head_mask=torch.zeros(LAYERS, HEADS))[0]
        same = torch.equal(masked, model(ids)[0])
    acted = "the same answer as with all heads" if same else "another answer"
    return [
        {"asked": "prune_heads, 2 of 4 in each layer", **cut},
        {"asked": "head_mask of zeros", "got": acted},
    ]


def try_torch_pruning() -> list[dict[str, str]]:
    import torch
    import torch_pruning

    rows = []
    for what, channels in (("heads alone", 0.0), ("heads and channels", 0.5)):
        model = bert()
        attention = [layer.attention.self for layer in model.encoder.layer]
        heads = {part: HEADS for one in attention for part in (one.query, one.key, one.value)}
        row = {"asked": f"head_pruning_ratio=0.5, pruning_ratio={channels} ({what})"}
        try:
            pruner = torch_pruning.pruner.BasePruner(
                model,
                example_inputs={"input_ids": torch.arange(5, 13)[None]},
                importance=torch_pruning.importance.MagnitudeImportance(),
                pruning_ratio=channels,
                num_heads=heads,
                prune_num_heads=True,
                prune_head_dims=False,
                head_pruning_ratio=0.5,
                output_transform=lambda out: out.pooler_output.sum(),
                ignored_layers=[model.pooler],
            )
            pruner.step()
            for one in attention:  # by hand, as its examples do
                one.num_attention_heads = pruner.num_heads[one.query]
                one.all_head_size = one.query.out_features
            row["got"] = widths(model)
            if row["got"] != widths(bert()):
                row["loads again"] = again(model, type(model).from_pretrained)
        except Exception as error:
            row["got"] = said(error)
        rows.append(row)
    return rows


def try_textpruner() -> list[dict[str, str]]:
    import textpruner
    import torch
    from transformers import BertForSequenceClassification

    rows = []
    for even, steps in ((True, 1), (False, 1), (False, 3)):
        torch.manual_seed(0)
        model = BertForSequenceClassification(bert().config).eval()
        row = {"asked": f"target_num_of_heads=2, head_even_masking={even}, n_iters={steps}"}
        batches = [
            {"input_ids": torch.randint(5, 99, (8, 12)), "labels": torch.randint(0, 2, (8,))}
            for _ in range(4)
        ]
        try:
            with tempfile.TemporaryDirectory() as folder:
                textpruner.TransformerPruner(
                    model,
                    textpruner.TransformerPruningConfig(
                        target_num_of_heads=2,
                        target_ffn_size=96,
                        pruning_method="iterative",
                        head_even_masking=even,
                        n_iters=steps,
                    ),
                    textpruner.GeneralConfig(use_device="cpu", output_dir=folder),
                ).prune(dataloader=batches, save_model=False)
            row["got"] = widths(model.bert)
            row["loads again"] = again(model.bert, type(model.bert).from_pretrained)
        except Exception as error:
            row["got"] = said(error)
        rows.append(row)
    return rows


def try_onnxsim() -> list[dict[str, str]]:
    import onnxsim
    import torch

    rows = []
    for simplify in (False, True):
        form = "simplified first" if simplify else "as torch exports it"
        row = {"asked": f"apply_attention_head_pruning(sparsity=0.5), {form}"}
        try:
            ids = torch.arange(5, 13)[None]
            program = torch.onnx.export(bert(), (ids,), dynamo=True, verbose=False)
            assert program is not None
            graph = program.model_proto
            if simplify:
                graph, _ = onnxsim.simplify(graph)
            before = numbers(graph)
            after = numbers(onnxsim.apply_attention_head_pruning(graph, sparsity=0.5))
            lost = f"{before - after:,} of {before:,} weights gone"
            row["got"] = "nothing removed, nothing said" if before == after else lost
        except Exception as error:
            row["got"] = said(error)
        rows.append(row)
    return rows


def numbers(graph: Any) -> int:
    from math import prod

    return sum(prod(tensor.dims) for tensor in graph.graph.initializer)


def try_modelopt() -> list[dict[str, str]]:
    """Its head pruning wants Megatron and a GPU; what is left to see here is what it offers."""
    row = {"asked": "import modelopt.torch.prune; a mode for BERT's heads"}
    try:
        from modelopt.torch.prune.pruning import PruneModeRegistry

        modes = sorted(str(mode) for mode in PruneModeRegistry._name2descriptor)
        row["got"] = f"modes: {', '.join(modes) or 'none'}"
    except Exception as error:
        row["got"] = said(error)
    return [row]


PEERS = {
    "headcount": ("headcount", ".", try_headcount),
    "transformers": ("transformers", "transformers==5.22.2", try_transformers),
    "torch-pruning": ("torch-pruning", "torch-pruning==1.6.1", try_torch_pruning),
    "textpruner": ("textpruner", "'transformers<5' textpruner==1.1.post2", try_textpruner),
    "onnxsim": ("onnxsim", "onnxsim==0.8.1", try_onnxsim),
    "modelopt": ("nvidia-modelopt", "nvidia-modelopt==0.47.0", try_modelopt),
}

if __name__ == "__main__":
    sys.exit(main())
