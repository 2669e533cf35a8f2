"""The demo as a story: what is asked, by which command, and what came out in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headcount.views import telling
from headcount.views.telling import Found

TASK = "--task pocket-acceptability"
BEGIN = (
    "How many attention heads does a transformer need? A small one is trained, asked and cut here, "
    "offline, in a few minutes. Every step is a command that you could type."
)
NEXT = (
    "headcount search ./my-bert --task mrpc --data glue --max-drop 1% --out answer",
    "headcount roles ./my-bert answer/model --inputs texts.txt --out answer/roles.json",
    "headcount report answer -o answer.html",
)
"""What to try after it."""


@dataclass(frozen=True)
class Step:
    """One command of the demo."""

    why: str
    command: str
    tell: Callable[[Found], str]
    file: str | None = None
    """Where what it printed is kept for the page, when the command keeps nothing itself."""


STORY = (
    Step(
        "First a model to work on: the pocket BERT that ships with headcount, 6 layers of 8 "
        "heads, learns to tell sentences from what is none.",
        f"train pocket {TASK} --preset pocket --out {{out}}/pocket",
        telling.tell_train,
    ),
    Step(
        "The question: how many of its 48 heads does it need, if at most 2 % of that score may be "
        "lost? Heads are removed, what is left is repaired without training, and tested.",
        f"search {{out}}/pocket {TASK} --max-drop 2% --samples 256 --seeds 2 --out {{out}}/search",
        telling.tell_search,
    ),
    Step(
        "Does it matter which heads go?",
        f"curve {{out}}/pocket {TASK} --methods random,importance,surgeon --ratios 0.25,0.5,0.75 "
        "--seeds 3 --samples 256 --out {out}/curve",
        telling.tell_curve,
    ),
    Step(
        "Do some heads look at the same things?",
        f"redundancy {{out}}/pocket {TASK} --samples 200 --distances js,cos --out {{out}}/near.npz",
        telling.tell_redundancy,
    ),
    Step(
        "On which ones does the task lean?",
        f"importance {{out}}/pocket {TASK} --samples 300 --out {{out}}/importance.json",
        telling.tell_importance,
    ),
    Step(
        "And what do they do? Each is looked at, timed, and closed alone.",
        f"roles {{out}}/pocket {{out}}/search/model {TASK} --samples 200 --alone --limit 200 "
        "--time --out {out}/roles.json",
        telling.tell_roles,
    ),
    Step(
        "Where do they look in a sentence, before and after the cut?",
        "attention {out}/pocket {out}/search/model "
        '--text "the teacher near the girls follows the old king and the dog sleeps ." '
        "--out {out}/attention",
        telling.tell_attention,
    ),
    Step(
        "Which heads did the fine-tuning change?",
        f"transfer pocket {{out}}/pocket {TASK} --samples 150 --importance-samples 128 "
        "--out {out}/transfer",
        telling.tell_transfer,
    ),
    Step(
        "Could the model have learnt by itself which heads to close?",
        f"prune {{out}}/pocket --method straight-through --ratio 0.4 {TASK} --preset pocket "
        "--steps 80 --limit 500 --baseline 0 --out {out}/gated",
        telling.tell_gates,
    ),
    Step(
        "Is the smaller model faster?",
        "bench {out}/pocket {out}/search/model --batch 8 --length 32 --no-onnx",
        telling.tell_bench,
        file="bench.json",
    ),
    Step("All of it on one page.", "report {out} -o {out}/report.html", telling.tell_report),
)
