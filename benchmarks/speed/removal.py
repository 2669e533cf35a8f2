"""How near removal comes to the ideal: a BERT-base-size model, 50, 75 and 90 % of its heads gone.

    python benchmarks/speed/removal.py [--batch 8] [--length 128] [--rounds 15] [--layers 12]
        [--json] [--quick]

Everything is timed in alternation in one run, as a share of the dense model's time beside the
share of its FLOPs. HEADCOUNT_V4 may name a Python that has transformers 4 and torch; its
`prune_heads` then takes the same heads out of the same model (half of them, eager attention) and
runs in the same rounds, in a process of its own. `--cpu` takes this process's CPU time, which a
busy machine disturbs less; without it, it is the time on the wall. `--quick` only sees that it
runs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "critical"

import torch
import transformers
from transformers import BertConfig, BertModel

from headcount.costs.bench import BenchResult, time_removed
from headcount.costs.flops import inputs_at
from headcount.costs.timing import TimedVariant, alternate, ratios
from headcount.heads import Mask
from headcount.heads.choose import random_mask
from headcount.models.find import layout
from headcount.models.remove import remove

RATIOS = (0.5, 0.75, 0.9)
BOUND = 1.07

# What runs under transformers 4: a model, the same with heads pruned, and one forward pass of
# either for every line it reads.
PEER = """
import json, sys, torch, transformers
from transformers import BertConfig, BertModel
asked = json.loads(sys.stdin.readline())
torch.set_num_threads(asked["threads"])
config = BertConfig(num_hidden_layers=asked["layers"], attn_implementation="eager")
models = {"dense": BertModel(config).eval(), "pruned": BertModel(config).eval()}
models["pruned"].prune_heads({int(layer): heads for layer, heads in asked["gone"].items()})
tokens = torch.tensor(asked["tokens"])
print(transformers.__version__, flush=True)
with torch.inference_mode():
    for line in sys.stdin:
        models[line.strip()](tokens)
        print("done", flush=True)
"""


def model_of(layers: int, attention: str) -> BertModel:
    config = BertConfig(num_hidden_layers=layers)
    return BertModel._from_config(config, attn_implementation=attention).eval()


def mask_at(model: BertModel, ratio: float) -> Mask:
    return random_mask(layout(model), ratio, seed=0)


def against_ideal(options: argparse.Namespace) -> BenchResult:
    dense = model_of(options.layers, "sdpa")
    masks = {f"{ratio:.0%}": mask_at(dense, ratio) for ratio in RATIOS}
    return time_removed(
        dense,
        {name: (mask, remove(dense, mask)) for name, mask in masks.items()},
        batch=options.batch,
        length=options.length,
        rounds=options.rounds,
        onnx=options.onnx,
        clock=time.process_time if options.cpu else time.perf_counter,
    )


def against_transformers_4(options: argparse.Namespace, python: str) -> dict[str, Any]:
    """Both libraries' dense and pruned models, eager, half the heads, in the same rounds."""
    dense = model_of(options.layers, "eager")
    mask = mask_at(dense, 0.5)
    small = remove(dense, mask)
    tokens = inputs_at(dense, batch=options.batch, length=options.length)["input_ids"]
    gone: dict[int, list[int]] = {}
    for head in mask.dropped:
        gone.setdefault(head.layer, []).append(head.index)
    request = {"threads": torch.get_num_threads(), "layers": options.layers, "gone": gone}
    with subprocess.Popen(
        [python, "-c", PEER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as peer:
        send = asker(peer)
        number = send(json.dumps({**request, "tokens": tokens.tolist()}))
        ways = [
            TimedVariant(name="headcount dense", run=lambda: dense(tokens)),
            TimedVariant(name="headcount removed", run=lambda: small(tokens)),
            TimedVariant(name="prune_heads dense", run=lambda: send("dense")),
            TimedVariant(name="prune_heads pruned", run=lambda: send("pruned")),
        ]
        times = alternate(ways, rounds=options.rounds)
        assert peer.stdin is not None
        peer.stdin.close()
    ours = ratios(times, "headcount dense")["headcount removed"]
    theirs = ratios(times, "prune_heads dense")["prune_heads pruned"]
    return {"transformers 4": number, "headcount": vars(ours), "prune_heads": vars(theirs)}


def asker(peer: subprocess.Popen[str]) -> Callable[[str], str]:
    """A function that sends the peer a line and waits for its answer."""

    def ask(line: str) -> str:
        assert peer.stdin is not None
        assert peer.stdout is not None
        peer.stdin.write(line + "\n")
        peer.stdin.flush()
        answer = peer.stdout.readline().strip()
        if not answer:
            raise SystemExit("The process with transformers 4 ended; see its message above.")
        return answer

    return ask


def show(bench: BenchResult, peer: dict[str, Any] | None) -> None:
    for row in bench.rows:
        line = f"{row.name:20} {row.ratio.median:.3f} [{row.ratio.low:.3f}, {row.ratio.high:.3f}]"
        line += f"  ideal {row.ideal:.3f}"
        if row.kind == "removed" and row.over_ideal:
            verdict = "within" if row.over_ideal <= BOUND else "NOT within"
            line += f"  {row.over_ideal:.3f} x the ideal, {verdict} {BOUND}"
        print(line)
    print(f"{'every head':20} ideal {1 / (bench.ceiling or 1):.3f} ({bench.ceiling:.2f} x as fast)")
    if peer is None:
        print("prune_heads: not compared; HEADCOUNT_V4 names no Python with transformers 4.")
        return
    for name in ("headcount", "prune_heads"):
        part = peer[name]
        faster = f"{1 / part['median']:.2f} x as fast"
        spread = f"[{1 / part['high']:.2f}, {1 / part['low']:.2f}]"
        number = f" (transformers {peer['transformers 4']})" if name == "prune_heads" else ""
        print(f"{name}, half the heads, eager: {faster} {spread}{number}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    for name, number in (("batch", 8), ("length", 128), ("rounds", 15), ("layers", 12)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--onnx", action="store_true", help="time onnxruntime, too")
    parser.add_argument("--cpu", action="store_true", help="CPU time instead of wall time")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="few rounds on a shallow model")
    options = parser.parse_args()
    if options.quick:
        options.batch, options.length, options.rounds, options.layers = 1, 16, 6, 2
    torch.manual_seed(0)
    bench = against_ideal(options)
    python = os.environ.get("HEADCOUNT_V4")
    peer = against_transformers_4(options, python) if python else None
    setting = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "threads": bench.threads,
        "batch": bench.batch,
        "length": bench.length,
        "layers": options.layers,
        "rounds": bench.rounds,
        "clock": "cpu" if options.cpu else "wall",
    }
    if options.json:
        rows = [
            {"name": row.name, "ideal": row.ideal, "over_ideal": row.over_ideal, **vars(row.ratio)}
            for row in bench.rows
        ]
        print(json.dumps({**setting, "rows": rows, "peer": peer}, indent=2))
    else:
        print(", ".join(f"{name} {value}" for name, value in setting.items()))
        show(bench, peer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
