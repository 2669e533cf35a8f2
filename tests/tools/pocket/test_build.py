"""The shipped models, and that the tasks need attention: the front door's promise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from headcount.heads import Mask
from headcount.models.find import layout
from headcount.models.load import load
from headcount.models.remove import remove
from headcount.models.shipped import NAMES, locate
from headcount.tasks import open_task
from headcount.tasks.loading import load_for_task
from headcount.tasks.pocket import examples
from headcount.training.evaluate import evaluate
from headcount.training.finetune import finetune
from headcount.training.options import PRESETS
from headcount.training.scoring import Scoring
from tools.pocket.bags import bag_of_words

PLAIN = Scoring(bootstrap=0)


def test_they_fit_into_eight_megabytes() -> None:
    files = [path for name in NAMES for path in Path(locate(name)).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 8_000_000
    assert {path.suffix for path in files} <= {".json", ".safetensors"}


def test_the_bert_has_enough_heads_to_prune() -> None:
    whole = layout(load("pocket"))
    assert len(whole.stacks[0].heads) >= 6
    assert len(whole) >= 48


def test_a_task_needs_attention() -> None:
    """The quickest of them, in 20 steps; `make pocket-tasks` fine-tunes all five to their end."""
    task = "pocket-sentiment"
    model = load_for_task("pocket", open_task(task))
    trained = finetune(model, task, options=replace(PRESETS["pocket"], steps=20))
    assert trained.evaluation is not None
    full = trained.evaluation.score
    words = bag_of_words(task, examples(task, "train", 4000), examples(task, "dev", 1000))
    headless = evaluate(remove(model, Mask.none(layout(model))), task, scoring=PLAIN).score
    assert full > max(words, headless) + 0.3


def test_the_corpus_needs_attention() -> None:
    model = load("pocket", head="masked-lm")
    full, headless = (
        evaluate(each, "pocket-corpus", scoring=Scoring(limit=200, bootstrap=0)).score
        for each in (model, remove(model, Mask.none(layout(model))))
    )
    assert full > headless + 0.3


def test_the_translation_needs_attention() -> None:
    model = load("pocket-translator")
    full, headless = (
        evaluate(each, "pocket-translation", scoring=Scoring(limit=60, bootstrap=0)).score
        for each in (model, remove(model, Mask.none(layout(model))))
    )
    assert 60 < full < 99.9
    assert headless < 10
