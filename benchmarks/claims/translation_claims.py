"""WL1 to WL3: an encoder-decoder cut at random, by layer pattern and by component, then trained.

    python benchmarks/claims/translation_claims.py --keep DIR [MODEL] [--data MULTI30K] [--seeds 5]
        [--few]

MODEL is the shipped pocket translator unless named; with --data it translates Multi30k's captions
from English into German. Every cut is scored as it is and after --steps of training; the model
with all its heads is trained on as long. Finished runs stay in DIR. Patterns and triples are the
papers' shapes for three layers of eight heads. With --few, for slower models, one ratio of each
kind of cut and no verdicts. Prints Markdown; intervals are 95 %.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import numpy as np
from scipy.stats import t

from headcount.models.shipped import locate
from headcount.pruning.methods import Decision, make_method
from headcount.pruning.select import prepare
from headcount.runs.asked import Prune, Repair
from headcount.runs.cutting import Cutting
from headcount.runs.subject import make_subject
from headcount.tasks import open_task
from headcount.tasks.loading import hush, load_for_task, tokenizer_of
from headcount.training.options import PRESETS
from headcount.training.scoring import Scoring

RATIOS = (0.25, 0.5, 0.6, 0.75)
# heads kept in three layers: of the self-attentions the lower ones, of the cross attention the
# upper ones are called important; each row keeps those, its mirror image prunes them
PATTERNS = {
    25: ("864", "468"),
    40: ("752", "257"),
    50: ("642", "246"),
    60: ("531", "135"),
    75: ("321", "123"),
}
COMPONENTS = {
    "48 %": ((7, 15, 15), (15, 7, 15), (15, 15, 7)),
    "65 %": ((5, 10, 10), (10, 5, 10), (10, 10, 5)),
    "79 %": ((3, 6, 6), (6, 3, 6), (6, 6, 3)),
}


FEW = ("full", "random 50%", "random 75%", "50%", "65 %")


def wanted(seeds: int, few: bool) -> list[tuple[str, str, dict[str, Any], float | None, int]]:
    """(name, method, options, ratio, seed) of every cut."""
    found: list[tuple[str, str, dict[str, Any], float | None, int]] = []
    for seed in range(seeds):
        found.append(("full", "random", {}, 0.0, seed))
        found += [(f"random {r:.0%}", "random", {}, r, seed) for r in RATIOS]
        # one head is left everywhere: 87 % of eight
        found.append(("random 87%", "random", {"leave": 1}, 0.875, seed))
        for share, (up, down) in PATTERNS.items():
            kept = {"encoder": up, "cross": down, "decoder": up}
            mirror = {"encoder": down, "cross": up, "decoder": down}
            for name, which in (("kept", kept), ("pruned", mirror)):
                text = " ".join(f"{stack}:{pattern}" for stack, pattern in which.items())
                found.append((f"important {name} {share}%", "pattern", {"keep": text}, None, seed))
        for share, triples in COMPONENTS.items():
            for name, triple in zip(("ES", "ED", "DS"), triples, strict=True):
                text = ",".join(map(str, triple))
                found.append((f"least {name} {share}", "pattern", {"keep": text}, None, seed))
    return [each for each in found if not few or each[0].endswith(FEW)]


def run(args: argparse.Namespace) -> dict[tuple[str, int], tuple[float, float]]:
    """(cut, seed) -> BLEU as it is, BLEU after training."""
    path = args.keep / "translation.jsonl"
    done: dict[tuple[str, int], tuple[float, float]] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            row = json.loads(line)
            done[row["cut"], row["seed"]] = (row["cut_bleu"], row["trained_bleu"])
    if args.data:
        task = open_task("translation", data=args.data, languages=("en", "de"))
    else:
        task = open_task("pocket-translation")
    name = args.model or locate("pocket-translator")
    options = replace(
        PRESETS["translation"],
        steps=args.steps,
        batch_size=64,
        learning_rate=args.rate,
        warmup=20,
        schedule="linear",
    )
    for cut, method, own, ratio, seed in wanted(args.seeds, args.few):
        if (cut, seed) in done:
            continue
        model = load_for_task(name, task, new_head=False)
        subject = make_subject(model, task, tokenizer=tokenizer_of(model))
        scoring = Scoring(limit=args.limit, draws=0)
        asked = Prune(method=make_method(method, own), ratio=ratio, scoring=scoring)
        plain = Cutting(subject=subject, asked=asked, seed=seed)
        decision = Decision(mask=prepare(model, method, **own)(ratio, seed))
        before = plain.score(model, [decision.mask]).score
        trained = replace(plain, asked=replace(asked, repair=Repair(train=options)))
        after = trained.score(trained.cut(decision)[0]).score
        done[cut, seed] = (before, after)
        row = {"cut": cut, "seed": seed, "pattern": decision.mask.pattern, "cut_bleu": before}
        with path.open("a") as file:
            file.write(json.dumps({**row, "trained_bleu": after}) + "\n")
        print(f"{cut} seed {seed}: {before:.2f}, trained {after:.2f}", file=sys.stderr, flush=True)
    return done


def interval(values: np.ndarray) -> tuple[float, float, float]:
    wide = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean()), float(values.mean() - wide), float(values.mean() + wide)


def said(values: np.ndarray) -> str:
    return "{:+.2f} [{:+.2f}, {:+.2f}]".format(*interval(values))


def no_difference(values: np.ndarray) -> str:
    """One value per ratio, and whether their mean may be 0."""
    _, low, high = interval(values)
    verdict = "holds" if low <= 0 <= high else "does not"
    return f"{said(values)}, by ratio {np.round(values, 2).tolist()}: {verdict}"


def tell(done: dict[tuple[str, int], tuple[float, float]], seeds: int, few: bool) -> None:
    def bleu(cut: str) -> np.ndarray:  # (seed, as it is / trained)
        return np.array([done[cut, seed] for seed in range(seeds)])

    print("| cut | BLEU as it is | after training | against the full model |\n|---|---|---|---|")
    full = bleu("full")
    for cut in dict.fromkeys(name for name, _ in done):
        value = bleu(cut)
        gap = value[:, 1] - full[:, 1]
        against = "-" if cut == "full" else said(gap) if seeds > 1 else f"{gap[0]:+.2f}"
        print(f"| {cut} | {value[:, 0].mean():.2f} | {value[:, 1].mean():.2f} | {against} |")
    if few:
        return
    for share, most in (("60%", 0.15), ("75%", 1.0)):
        value = full[:, 1] - bleu(f"random {share}")[:, 1]
        _, low, high = interval(value)
        verdict = "holds" if high <= most else "does not" if low > most else "undecided"
        print(f"\nWL1 {share}: drop {said(value)}, at most {most}: {verdict}")
    pairs = np.array(
        [
            bleu(f"important kept {share}%")[:, 1] - bleu(f"important pruned {share}%")[:, 1]
            for share in PATTERNS
        ]
    ).mean(1)
    print(f"\nWL2 kept minus pruned over {len(pairs)} ratios: {no_difference(pairs)}")
    for first, second in (("ES", "ED"), ("ES", "DS"), ("ED", "DS")):
        gaps = np.array(
            [
                (bleu(f"least {first} {share}") - bleu(f"least {second} {share}"))[:, 1].mean()
                for share in COMPONENTS
            ]
        )
        print(f"\nWL3 least {first} minus least {second}: {no_difference(gaps)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?")
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--data", type=Path, help="Multi30k's folder")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--limit", type=int, default=300, help="rows of dev that are scored")
    parser.add_argument("--few", action="store_true", help="fewer cuts, no verdicts")
    args = parser.parse_args()
    args.keep.mkdir(parents=True, exist_ok=True)
    hush()
    tell(run(args), args.seeds, args.few)
    return 0


if __name__ == "__main__":
    sys.exit(main())
