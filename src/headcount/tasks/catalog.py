"""The list of tasks, by name; listing them imports nothing, opening one imports its file."""

from __future__ import annotations

from headcount.base.errors import UsageError
from headcount.base.registry import Registry
from headcount.base.text import short
from headcount.tasks.pocket.world import POCKET_TASKS
from headcount.tasks.source import make_source
from headcount.tasks.task import Task

TASKS = Registry("task", plugins="headcount.tasks")
for _name, _summary in {
    "cola": "GLUE acceptability; Matthews",
    "sst2": "GLUE sentiment; accuracy",
    "mrpc": "GLUE paraphrase; F1",
    "qqp": "GLUE duplicate questions; mean of accuracy and F1",
    "stsb": "GLUE similarity 0-5; Spearman",
    "mnli": "GLUE three-way entailment, matched; accuracy",
    "mnli-mm": "GLUE three-way entailment, mismatched; accuracy",
    "qnli": "GLUE question and answer; accuracy",
    "rte": "GLUE two-way entailment; accuracy",
    "wnli": "GLUE pronouns; accuracy",
}.items():
    TASKS.add(_name, f"headcount.tasks.glue:{_name.replace('-', '_')}", _summary)
TASKS.add(
    "classification",
    "headcount.tasks.own:classification",
    "your own CSV, TSV, JSONL or Parquet with classes; accuracy",
)
TASKS.add(
    "regression",
    "headcount.tasks.own:regression",
    "your own CSV, TSV, JSONL or Parquet with scores; Spearman",
)
TASKS.add("masked-lm", "headcount.tasks.language:masked_lm", "any text; recall@1 and perplexity")
TASKS.add("causal-lm", "headcount.tasks.language:causal_lm", "any text; perplexity")
TASKS.add(
    "translation",
    "headcount.tasks.language:translation",
    "parallel text files or a table; BLEU",
)
TASKS.add(
    "image-classification",
    "headcount.tasks.images:image_classification",
    "a folder of folders of images, or a table of paths and classes; accuracy and top-5",
)
TASKS.add(
    "token-classification",
    "headcount.tasks.tagged:token_classification",
    "words with tags: CoNLL columns, or JSONL with tokens and tags; entity F1 and accuracy",
)
TASKS.add(
    "embedding",
    "headcount.tasks.embeddings:embedding",
    "any text, without labels; fidelity to the full model's embeddings, neighbours kept",
)
TASKS.add(
    "similarity",
    "headcount.tasks.embeddings:similarity",
    "pairs of texts with a number, for embedding models; Spearman of the cosine",
)
TASKS.add(
    "retrieval",
    "headcount.tasks.retrieval:retrieval",
    "a folder in BEIR's layout, for embedding models; nDCG@10 and recall@10",
)
for _name, _pocket in POCKET_TASKS.items():
    TASKS.add(
        _name,
        f"headcount.tasks.generated:{_name.replace('-', '_')}",
        f"built in, no download: {_pocket.summary}",
    )


def open_task(task: str | Task, **source: object) -> Task:
    """The task of this name on the data the settings of `Source` describe; a Task stays itself."""
    if not isinstance(task, str | Task):
        raise UsageError(f"A task is a name of headcount ls tasks or a Task, not {short(task)}.")
    if isinstance(task, Task):
        return task
    settings = make_source(**source)
    opened = TASKS[task](settings)
    if settings.window is not None and opened.window is None:
        raise UsageError(f"Task '{task}' has no windows: --window is for causal-lm.")
    return opened
