"""Peak resident memory of removal, importance, the surgeon and recovery, in sizes of the model.

    python benchmarks/speed/memory.py [--model FOLDER] [--dtype bfloat16] [--tokens 2048]
        [--length 256] [--json] [--quick]

Every stage runs in a process of its own. What counts is the highest resident size from the loaded
model on, less what Python and its libraries take before it, divided by the bytes of the model's
weights. Without a folder it is a made-up language model of 0.43 billion weights. It ends with 1
where a goal is missed; `--quick` only sees that it runs, on a small one. Linux only.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel

import headcount as hc
from headcount.heads import Scores
from headcount.heads.choose import keep_best, random_mask
from headcount.models.find import layout
from headcount.models.load import load
from headcount.models.remove import remove, remove_sharing
from headcount.pruning.surgeon import merged, paths
from headcount.repair.recovery import recover_layers
from headcount.sensitivity.gradients import importance
from headcount.tasks.encoding import EncodedRows

GOALS = {"removal": 1.3, "removal, own weights": None, "importance": None, "surgeon": None,
         "surgeon and recovery": 1.6}  # fmt: skip


def resident(name: str) -> int:
    """VmRSS or VmHWM of this process, in bytes."""
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    assert found is not None
    return 1024 * int(found[1])


def build(folder: str | None, dtype: torch.dtype, quick: bool) -> PreTrainedModel:
    if folder is not None:
        return load(folder, dtype=dtype).eval()
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"hidden_size": 1024, "num_hidden_layers": 24, "vocab_size": 32000,
                             "intermediate_size": 4096}  # fmt: skip
    if quick:
        sizes |= {"hidden_size": 256, "num_hidden_layers": 2, "intermediate_size": 512}
    config = LlamaConfig(num_attention_heads=16, num_key_value_heads=4, **sizes)
    torch.set_default_dtype(dtype)
    model = LlamaForCausalLM(config).eval()
    torch.set_default_dtype(torch.float32)
    return model


def measure(stage: str, options: argparse.Namespace) -> dict[str, float]:
    before = resident("VmRSS")
    model = build(options.model, getattr(torch, options.dtype), options.quick)
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    ids = np.random.default_rng(0).integers(
        5, 30000, (options.tokens // options.length, options.length)
    )
    rows = EncodedRows({"input_ids": ids.tolist()}, ids.tolist(), {"input_ids": 0}, "causal-lm")
    heads = layout(model)
    loaded = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    kept: Any = None
    if stage.startswith("removal"):
        way = remove if "own" in stage else remove_sharing
        kept = way(model, random_mask(heads, 1 / 3, 0))
    elif stage == "importance":
        importance(model, rows)
    else:
        scores = Scores(heads, merged(heads, paths(model, rows)))
        if "recovery" in stage:
            kept = remove_sharing(model, keep_best(scores, heads.kept_at(1 / 3)))
            recover_layers(kept, model, rows, options=hc.Recover())
    peak = resident("VmHWM")
    return {
        "weights": weights,
        "loaded": (loaded - before) / weights,
        "peak": (peak - before) / weights,
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--stage")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    if options.stage:
        print(json.dumps(measure(options.stage, options)))
        return 0
    results = {}
    for stage in GOALS:
        asked = [a for a in arguments if a != "--json"]
        command = [sys.executable, __file__, *asked, "--stage", stage]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{stage}: {done.stderr[-2000:]}")
        results[stage] = json.loads(done.stdout.splitlines()[-1])
        if not options.json:
            row, goal = results[stage], GOALS[stage]
            print(
                f"{stage:22} {row['peak']:.2f} x the weights ({row['weights'] / 2**30:.2f} GiB; "
                f"{row['loaded']:.2f} x when loaded){f', goal {goal}' if goal else ''}",
                flush=True,
            )
    if options.json:
        print(json.dumps(results, indent=2))
    missed = [stage for stage, goal in GOALS.items() if goal and results[stage]["peak"] > goal]
    return int(bool(missed) and not options.quick)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
