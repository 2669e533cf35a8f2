"""What the seven distances cost, beside the model's own forward pass and beside other packages.

    python benchmarks/speed/redundancy.py [--json] [--rounds 12] [--attention mixed|model] [--quick]

A BERT-base (12 x 12 heads, width 768, random weights, sdpa, batches of 8) sets the scale: every
cost is that of one sentence. All that is compared runs in turn, round by round, and the fastest
round counts: on a shared machine the others measure the neighbours. What runs on one core is
measured in CPU time, what runs on all in wall time: that needs the machine to itself.

`mixed` attention is made up of what trained heads do (look at a neighbour, at the first token, at
some tokens, at all); `model` is that of the model itself, nearly even when weights are random.
`--quick` only sees that it runs: one round of 25 tokens, without the dcor package, which compiles
itself for half a minute when it is first imported. It ends with 1 where a figure that must be is
missed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
from scipy.spatial.distance import cdist, pdist
from transformers import BertConfig, BertModel

from headcount.likeness.distances import distances
from headcount.likeness.options import check_names

HEADS, BATCH = 144, 8
SEVEN = check_names("all")
SIX = [name for name in SEVEN if name != "pc"]
CORES = len(os.sched_getaffinity(0))


def fastest(
    rounds: int, clock: Callable[[], float] = time.process_time, /, **calls: Callable[[], Any]
) -> dict[str, float]:
    """Seconds of the fastest of `rounds` calls of each, called in turn."""
    best = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            start = clock()
            call()
            best[name] = min(best[name], clock() - start)
    return best


def mixed_attention(tokens: int, seed: int = 0) -> np.ndarray:
    """Made-up attention of 144 heads with the habits of trained ones."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(HEADS, tokens, tokens)) * rng.choice([0.5, 1, 2], size=(HEADS, 1, 1))
    habit = rng.integers(0, 4, size=HEADS)
    strength = rng.uniform(2, 7, size=HEADS)
    rows = np.arange(tokens)
    for head in range(HEADS):
        if habit[head] == 0:
            logits[head, :, 0] += strength[head]
        elif habit[head] == 1:
            step = rng.choice([-1, 1])
            logits[head, rows, np.clip(rows + step, 0, tokens - 1)] += strength[head]
        elif habit[head] == 2:
            logits[head] += 2 * rng.normal(size=(1, tokens))
    rows = np.exp(logits - logits.max(-1, keepdims=True))
    return (rows / rows.sum(-1, keepdims=True)).astype(np.float32)


def model_attention(model: BertModel, ids: torch.Tensor) -> np.ndarray:
    model.set_attn_implementation("eager")
    with torch.no_grad():
        layers = model(ids[:1], output_attentions=True).attentions
    model.set_attn_implementation("sdpa")
    return torch.cat([layer[0] for layer in layers]).numpy()


def against_forward(model: BertModel, attention: np.ndarray, ids: torch.Tensor, rounds: int):
    """Milliseconds a sentence of the forward pass and the distances, on one core and on all."""

    def forward() -> None:
        with torch.no_grad():
            model(ids)

    out: dict[str, Any] = {"tokens": ids.shape[1]}
    for threads in sorted({1, CORES}):
        torch.set_num_threads(threads)

        def run(names: list[str], threads: int = threads) -> Callable[[], Any]:
            return lambda: distances(attention, names, threads=threads)

        calls = {"six": run(SIX), **{name: run([name]) for name in SIX}}
        if attention.shape[1] < 64:  # pc grows with the cube of the tokens
            calls |= {"pc": run(["pc"]), "seven": run(SEVEN)}
        clock = time.process_time if threads == 1 else time.perf_counter
        best = fastest(rounds, clock, forward=forward, **calls)
        best["forward"] /= BATCH
        out[f"ms on {threads}"] = {name: round(1e3 * value, 3) for name, value in best.items()}
        for names in ("six", "seven"):
            if names in best:
                out[f"{names} / forward on {threads}"] = best[names] / best["forward"]
    return out


def two_threads(attention: np.ndarray, names: list[str], rounds: int) -> float:
    """How many times faster all cores are than one."""
    best = fastest(
        rounds,
        time.perf_counter,
        one=lambda: distances(attention, names, threads=1),
        all=lambda: distances(attention, names, threads=CORES),
    )
    return best["one"] / best["all"]


def against_scipy(attention: np.ndarray, rounds: int, tokens: int = 6) -> dict[str, Any]:
    """scipy's jensenshannon, token by token on some tokens, and ours on all, on one core."""
    some = np.linspace(0, attention.shape[1] - 1, tokens).astype(int)
    rows = [attention[:, t].astype(np.float64) for t in some]
    best = fastest(
        rounds,
        ours=lambda: distances(attention, "js", threads=1),
        cdist=lambda: [cdist(row, row, "jensenshannon") for row in rows],
        pdist=lambda: [pdist(row, "jensenshannon") for row in rows],
    )
    scale = attention.shape[1] / tokens
    return {
        "rival": f"scipy {version('scipy')}, {tokens} of {attention.shape[1]} tokens timed",
        "times cdist": best["cdist"] * scale / best["ours"],
        "times pdist": best["pdist"] * scale / best["ours"],
    }


def against_dcor(attention: np.ndarray, rounds: int, pairs: int = 60) -> dict[str, Any]:
    """The dcor package on some pairs, extrapolated to all, and ours on all, both on one core."""
    import dcor

    wide = attention.astype(np.float64)
    rng = np.random.default_rng(1)
    some = [rng.choice(HEADS, 2, replace=False) for _ in range(pairs)]
    best = fastest(
        rounds,
        ours=lambda: distances(attention, "dcor", threads=1),
        dcor=lambda: [dcor.distance_correlation(wide[a], wide[b]) for a, b in some],
    )
    everything = HEADS * (HEADS - 1) / 2
    return {
        "rival": f"dcor {version('dcor')}, {pairs} pairs timed, extrapolated to {everything:.0f}",
        "times dcor": best["dcor"] / pairs * everything / best["ours"],
    }


def first_calls(names: list[str]) -> dict[str, float]:
    """CPU seconds that each distance takes to compile in a process that has no cache."""
    import subprocess
    import tempfile

    code = (
        "import sys, time, numpy as np\n"
        "from headcount.likeness.distances import distances\n"
        "import numba\n"
        "a = np.full((3, 3, 3), 1 / 3, np.float32)\n"
        "for name in sys.argv[1:]:\n"
        "    start = time.process_time(); distances(a, name)\n"
        "    print(name, time.process_time() - start)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "NUMBA_CACHE_DIR": folder}
        ran = subprocess.run(
            [sys.executable, "-c", code, *names],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
    return {name: float(value) for name, value in map(str.split, ran.stdout.splitlines())}


def measure(rounds: int, attention: str, *, quick: bool) -> dict[str, Any]:
    torch.manual_seed(0)
    layers = 1 if quick else 12
    model = BertModel(BertConfig(num_hidden_layers=layers, attn_implementation="sdpa")).eval()
    out: dict[str, Any] = {
        "torch": torch.__version__,
        "transformers": version("transformers"),
        "cores": CORES,
        "attention": attention,
        "compile (CPU s)": first_calls(SEVEN[:1] if quick else SEVEN),
    }
    fewer = 1 if quick else max(3, rounds // 3)
    for tokens in (25,) if quick else (25, 128):
        ids = torch.randint(1000, 20000, (BATCH, tokens))
        given = mixed_attention(tokens) if attention == "mixed" else model_attention(model, ids)
        out[f"n = {tokens}"] = {
            **against_forward(model, given, ids, rounds if tokens < 64 else fewer),
            f"{CORES} threads over 1, six": two_threads(given, SIX, rounds),
            "js": against_scipy(given, fewer),
        }
        if not quick:
            out[f"n = {tokens}"]["dcor"] = against_dcor(given, fewer)
        if tokens < 64:
            out[f"n = {tokens}"][f"{CORES} threads over 1, seven"] = two_threads(
                given, SEVEN, rounds
            )
    return out


def verdicts(results: dict[str, Any]) -> list[tuple[str, float, str, float, float]]:
    """(what, ratio, at most or at least, must, goal) for everything that is held to a figure."""
    short, long = results["n = 25"], results["n = 128"]
    rows = []
    for threads in sorted({1, CORES}):
        on = f"forward on {threads}"
        rows += [
            (f"six / {on}, 25 tokens", short[f"six / {on}"], "<=", 0.2, 0.15),
            (f"six / {on}, 128 tokens", long[f"six / {on}"], "<=", 0.7, 0.5),
            (f"seven / {on}, 25 tokens", short[f"seven / {on}"], "<=", 2.0, 1.0),
        ]
    for tokens, values in (("25", short), ("128", long)):
        rows += [
            (f"js, times cdist, {tokens} tokens", values["js"]["times cdist"], ">=", 60, 75),
            (f"dcor, times dcor, {tokens} tokens", values["dcor"]["times dcor"], ">=", 1000, 1000),
        ]
    name = f"{CORES} threads over 1"
    rows.append((f"{name}, seven, 25 tokens", short[f"{name}, seven"], ">=", 1.6, 1.8))
    rows.append((f"{name}, six, 128 tokens", long[f"{name}, six"], ">=", 1.6, 1.8))
    return rows


def met(ratio: float, sign: str, bar: float) -> bool:
    return ratio <= bar if sign == "<=" else ratio >= bar


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--attention", choices=["mixed", "model"], default="mixed")
    parser.add_argument("--quick", action="store_true", help="one round on a shallow model")
    args = parser.parse_args()
    results = measure(1 if args.quick else args.rounds, args.attention, quick=args.quick)
    rows = [] if args.quick else verdicts(results)  # a shallow model's ratios say nothing
    missed = any(not met(ratio, sign, must) for _, ratio, sign, must, _ in rows)
    if args.json:
        print(json.dumps({**results, "verdicts": rows}, indent=2))
        return int(missed)
    for key, value in results.items():
        if not isinstance(value, dict):
            print(f"{key}: {value}")
            continue
        print(f"\n{key}")
        for name, numbers in value.items():
            print(f"  {name}: {f'{numbers:.3f}' if isinstance(numbers, float) else numbers}")
    print()
    for what, ratio, sign, must, goal in rows:
        verdict = "met" if met(ratio, sign, must) else "MISSED"
        verdict = "goal met" if met(ratio, sign, goal) else verdict
        print(f"{what:36} {ratio:9.3f}   must {sign} {must:g}, goal {sign} {goal:g}: {verdict}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
