"""The pocket tasks need attention: what counting words gives, the full model, and pruned ones.

    python benchmarks/coverage/pocket_tasks.py                # every task, about half an hour
    python benchmarks/coverage/pocket_tasks.py --few          # the margins only: make pocket-tasks
    python benchmarks/coverage/pocket_tasks.py pocket-sentiment pocket-translation
    HEADCOUNT_WEIGHTS=DIR python benchmarks/coverage/pocket_tasks.py # models that build wrote

Each task is fine-tuned with `--preset pocket` on 4,000 made rows and scored on 1,000. Cut: the
fine-tuned model with heads masked at random and no training after, the mean of five draws. The
full model must beat counting words, and the model without heads, by the margin of its task: the
exit code says whether all do.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, str(Path(__file__).parents[2]))  # tools/

from headcount.heads import Layout, Mask
from headcount.models.find import layout
from headcount.models.remove import remove
from headcount.models.shipped import locate
from headcount.tasks import open_task
from headcount.tasks.loading import hush, load_for_task, load_tokenizer
from headcount.tasks.pocket import POCKET_TASKS, examples
from headcount.training.evaluate import evaluate
from headcount.training.finetune import finetune
from headcount.training.options import PRESETS
from headcount.training.scoring import Scoring
from tools.pocket.bags import bag_of_words

SHARES = (0.25, 0.5, 0.75)
DRAWS = 5
PLAIN = Scoring(bootstrap=0)
MARGINS = {
    "pocket-acceptability": 0.5,
    "pocket-sentiment": 0.3,
    "pocket-paraphrase": 0.25,
    "pocket-similarity": 0.4,
    "pocket-entailment": 0.2,
    "pocket-translation": 50.0,  # BLEU
}
"""By how much a task must need attention."""


def folder(name: str) -> str:
    weights = os.environ.get("HEADCOUNT_WEIGHTS")
    return str(Path(weights) / name) if weights else locate(name)


def random_mask(whole: Layout, share: float, seed: int) -> Mask:
    from random import Random

    heads = list(Mask.full(whole))
    return Mask.full(whole).drop(Random(seed).sample(heads, round(share * len(heads))))


def pruned(model: Any, task: Any, tokenizer: Any) -> dict[str, float]:
    whole = layout(model)
    masks = [random_mask(whole, share, seed) for share in SHARES for seed in range(DRAWS)]
    scored = evaluate(model, task, [*masks, Mask.none(whole)], tokenizer=tokenizer, scoring=PLAIN)
    rows = {
        f"pruned {share:.0%}": fmean(
            evaluation.score for evaluation in scored[at * DRAWS : (at + 1) * DRAWS]
        )
        for at, share in enumerate(SHARES)
    }
    return rows | {"pruned 100%": scored[-1].score}


def classify(name: str, few: bool) -> dict[str, float]:
    task, tokenizer = open_task(name), load_tokenizer(folder("pocket-bert"))
    rows, tests = examples(name, "train", 4000), examples(name, "dev", 1000)

    def tuned(model: Any) -> float:
        done = finetune(model, task, options=PRESETS["pocket"], tokenizer=tokenizer)
        assert done.evaluation is not None
        return done.evaluation.score

    def fresh(**settings: Any) -> Any:
        return load_for_task(folder("pocket-bert"), task, **settings)

    full = fresh()
    whole = layout(full)
    scores = {
        "words": bag_of_words(name, rows, tests),
        "full": tuned(full),
        **pruned(full, task, tokenizer),
    }
    if few:
        return scores
    scores["bigrams"] = bag_of_words(name, rows, tests, ngrams=2)
    scores["no heads, tuned"] = tuned(remove(fresh(), Mask.none(whole)))
    scores["half, tuned"] = tuned(remove(fresh(), random_mask(whole, 0.5, 0)))
    scores["from scratch"] = tuned(fresh(from_scratch=True))
    return scores


def translate() -> dict[str, float]:
    task, tokenizer = open_task("pocket-translation"), load_tokenizer(folder("pocket-translator"))
    model = load_for_task(folder("pocket-translator"), task, new_head=False)
    scores = {"full": evaluate(model, task, tokenizer=tokenizer, scoring=PLAIN).score}
    return scores | pruned(model, task, tokenizer)


def main(arguments: list[str]) -> int:
    hush()
    few, names = "--few" in arguments, [name for name in arguments if name != "--few"]
    missed = []
    known = [name for name, task in POCKET_TASKS.items() if task.kind != "masked-lm"]
    for name in names or known:
        scores = translate() if name == "pocket-translation" else classify(name, few)
        print(f"| task | {' | '.join(scores)} |\n|---{'|---' * len(scores)}|")
        cells = (f"{value:.{1 if 'translation' in name else 3}f}" for value in scores.values())
        print(f"| {name} | {' | '.join(cells)} |\n", flush=True)
        if scores["full"] <= max(scores.get("words", 0.0), scores["pruned 100%"]) + MARGINS[name]:
            missed.append(name)
    print(f"do not need attention: {', '.join(missed)}" if missed else "all need attention")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
