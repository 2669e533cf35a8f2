"""Whether a recovery chosen on held-back rows is the better one on rows that it has not seen.

    python benchmarks/coverage/recovery_choice.py [--case NAME=MODEL,KIND,DATA,COLUMNS…]…
        [--method surgeon] [--ratios 0.5 0.75 0.9] [--tokens 512 2048 8192] [--draws 3] [--held 256]
        [--length 128] [--path-rank N] [--json]

A case is a model with the task whose rows it reads, `pocket-bert,pocket-corpus` and
`pocket-translator,pocket-translation` when none is given: MODEL,TASK, or MODEL,KIND,DATA and text
columns after that. For each ratio, number of calibration tokens and draw the same heads are removed
twice: repaired by `recover` (first edition) and by `recover --choose` (second). Both are compared
with the full model's answers on `--held` rows of the evaluation split, in eight parts, by KL
divergence (relative squared error where answers are no logits). Counted are: how often the second
is below the first edition, or the pruned model, by more than two standard errors of the difference
over the parts; and how often the estimate of the held-back rows (the chosen trial against the plain
one, and against the pruned model) has the sign that the unseen rows have. It ends with 1 where the
second edition is below by more than noise, or fewer than nine of ten signs agree.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass

import numpy as np
from transformers import PreTrainedModel
from transformers.utils import logging

import headcount as hc
from headcount.models.model_options import ModelOptions
from headcount.models.remove import remove
from headcount.repair.choice import choose
from headcount.repair.fidelity import divergence
from headcount.repair.recover import Recover
from headcount.repair.recovery import recover_layers
from headcount.tasks.catalog import open_task
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.opening import open_model
from headcount.tasks.rows import labelled_rows

CASES = ("pocket-bert,pocket-corpus", "pocket-translator,pocket-translation")
PARTS = 8


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Two repairs of the same pruned model, on rows that neither has seen."""

    case: str
    ratio: float
    tokens: int
    draw: int
    pruned: float
    first: float
    second: float
    noise: float
    """Standard error of second - first over the parts."""
    noise_pruned: float
    """Of second - pruned."""
    estimated: float
    """How much nearer than plain recovery the chosen one is on the held-back rows."""
    estimated_pruned: float
    """Than the pruned model."""
    chosen: str
    seconds: float

    def worse(self) -> bool:
        """Whether the second edition is further away than the first by more than noise."""
        return self.second - self.first > 2 * self.noise

    def worse_than_pruned(self) -> bool:
        """The same against the pruned model."""
        return self.second - self.pruned > 2 * self.noise_pruned


def of_tokens(rows: EncodedRows, tokens: int, seed: int) -> EncodedRows:
    """Rows in a random order up to so many tokens."""
    order = np.random.default_rng(seed).permutation(len(rows))
    lengths = np.array([len(row) for row in rows.columns["input_ids"]])
    taken = np.searchsorted(np.cumsum(lengths[order]), tokens) + 1
    return rows.take(np.sort(order[:taken]))


def distances(small: PreTrainedModel, model: PreTrainedModel, parts: list[EncodedRows]):
    return np.array([divergence(small, model, part) for part in parts])


def compare(case: str, options: argparse.Namespace) -> list[Compared]:
    name, kind, *data = case.split(",")
    columns = {"columns": tuple(data[1:])} if data[1:] else {}
    task = open_task(kind, data=data[0] if data else None, **columns)
    opened = open_model(name, ModelOptions(), task)
    model, tokenizer = opened.model, opened.tokenizer
    made = {"max_length": options.length}
    pool = labelled_rows(model, task, tokenizer, limit=4000, seed=0, **made)
    held = labelled_rows(
        model, task, tokenizer, split=task.evaluation, limit=options.held, seed=1, **made
    )
    parts = [held.take(np.arange(at, len(held), PARTS)) for at in range(PARTS)]
    found: list[Compared] = []
    for tokens in options.tokens:
        for draw in range(options.draws):
            rows = of_tokens(pool, tokens, draw)
            for ratio in options.ratios:
                started = time.perf_counter()
                mask = hc.select(model, options.method, ratio, data=rows)
                pruned, first, second = (remove(model, mask) for _ in range(3))
                recover_layers(first, model, rows)
                way = Recover(choose=True, path_rank=options.path_rank)
                choice = choose(second, model, rows, options=way)
                bare, one, two = (distances(m, model, parts) for m in (pruned, first, second))
                of = [trial.divergence for trial in choice.trials]
                best = choice.chosen
                near = of[:2] if len(of) > 1 else [np.nan, np.nan]
                said = best.to_json()["options"]
                one_of = Compared(
                    case=name, ratio=ratio, tokens=tokens, draw=draw,
                    pruned=float(bare.mean()), first=float(one.mean()), second=float(two.mean()),
                    noise=float((two - one).std(ddof=1) / PARTS**0.5),
                    noise_pruned=float((two - bare).std(ddof=1) / PARTS**0.5),
                    estimated=near[1] - best.divergence,
                    estimated_pruned=near[0] - best.divergence,
                    chosen=json.dumps(said), seconds=time.perf_counter() - started,
                )  # fmt: skip
                found.append(one_of)
                if not options.json:
                    print(line(one_of), flush=True)
    return found


def line(item: Compared) -> str:
    plain = json.loads(item.chosen)
    said = "left as it is"
    if plain is not None:
        said = ", ".join(f"{k} {v}" for k, v in plain.items() if v not in (False, 0, "output"))
    return (
        f"{item.case:24} {item.ratio:4.0%} {item.tokens:5} tokens, draw {item.draw}: pruned "
        f"{item.pruned:.4f}, first {item.first:.4f}, second {item.second:.4f} "
        f"(± {2 * item.noise:.4f}); {said}; {item.seconds:.0f} s"
    )


def agreement(pairs: list[tuple[float, float]]) -> tuple[int, int]:
    """How many estimates have the sign of what was found, of those that say anything."""
    told = [(said, was) for said, was in pairs if np.isfinite(said) and said != 0]
    return sum((said > 0) == (was > 0) for said, was in told), len(told)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append")
    parser.add_argument("--method", default="surgeon")
    parser.add_argument("--ratios", nargs="+", type=float, default=[0.5, 0.75, 0.9])
    parser.add_argument("--tokens", nargs="+", type=int, default=[512, 2048, 8192])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--held", type=int, default=256)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--path-rank", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    logging.disable_progress_bar()
    found = [item for case in options.case or CASES for item in compare(case, options)]
    worse = sum(item.worse() for item in found)
    harmed = sum(item.worse_than_pruned() for item in found)
    against_first = agreement([(i.estimated, i.first - i.second) for i in found])
    against_pruned = agreement([(i.estimated_pruned, i.pruned - i.second) for i in found])
    if options.json:
        print(json.dumps([asdict(item) for item in found], indent=1))
    nearer = sum(item.second < item.first for item in found)
    print(
        f"{len(found)} pairs: the second edition is nearer to the full model in {nearer}, further "
        f"away than the first by more than noise in {worse}, than the pruned model in {harmed}. "
        f"The estimate's sign agrees with unseen rows in {against_first[0]} of {against_first[1]} "
        f"against the first edition, and in {against_pruned[0]} of {against_pruned[1]} against the "
        "pruned model.",
        file=sys.stderr if options.json else sys.stdout,
    )
    agreed = [done >= 0.9 * of for done, of in (against_first, against_pruned)]
    return 0 if not worse and not harmed and all(agreed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
