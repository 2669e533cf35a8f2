"""The list of tasks, by name; listing them imports nothing, opening one imports its file."""

from __future__ import annotations

from dataclasses import replace

from headcount.base.errors import UsageError
from headcount.base.names import unknown
from headcount.base.registry import Registry
from headcount.base.text import short
from headcount.tasks.pocket.world import POCKET_TASKS
from headcount.tasks.source import Source, make_source
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
for _name, _where, _summary in (
    (
        "classification",
        "own:classification",
        "CSV, TSV, JSONL or Parquet with one or two texts and a class; accuracy",
    ),
    (
        "regression",
        "own:regression",
        "CSV, TSV, JSONL or Parquet with one or two texts and a score; Spearman",
    ),
    (
        "masked-lm",
        "language:masked_lm",
        "text files, or a column of a table; recall@1 and perplexity",
    ),
    ("causal-lm", "language:causal_lm", "text files, or a column of a table; perplexity"),
    (
        "multiple-choice",
        "choices:multiple_choice",
        "JSONL with a prompt, choices and an answer, or the columns of a table; acc and acc_norm",
    ),
    (
        "translation",
        "language:translation",
        "parallel text files, or two columns of a table; BLEU",
    ),
    (
        "text-to-text",
        "language:text_to_text",
        "pairs in a table, for encoder-decoders; ROUGE-L and chrF",
    ),
    (
        "image-classification",
        "images:image_classification",
        "a folder of folders of images, or a table of paths and classes; accuracy and top-5",
    ),
    (
        "speech-recognition",
        "speech:speech_recognition",
        "a table of WAV files and their texts; word and character error rate",
    ),
    (
        "token-classification",
        "tagged:token_classification",
        "words with tags, as CoNLL columns or JSONL with tokens and tags; entity F1 and accuracy",
    ),
    (
        "question-answering",
        "squad:question_answering",
        "SQuAD's JSON, with or without questions that have no answer; F1 and exact match",
    ),
    (
        "embedding",
        "embeddings:embedding",
        "text files, or a column of a table, without labels; fidelity to the full model's "
        "embeddings, neighbours kept",
    ),
    (
        "similarity",
        "embeddings:similarity",
        "CSV, TSV, JSONL or Parquet with two texts and a number, for embedding models; Spearman "
        "of the cosine",
    ),
    (
        "retrieval",
        "retrieval:retrieval",
        "a folder in BEIR's layout, for embedding models; nDCG@10 and recall@10",
    ),
):
    TASKS.add(_name, f"headcount.tasks.{_where}", f"your own data: {_summary}")
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
    return read_task(task, make_source(**source))


def read_task(name: str, source: Source) -> Task:
    """The task of this name on these data."""
    if source.in_memory:
        raise UsageError(
            f"The rows of this task ({source.in_memory}) were in the memory of the process that "
            "had them: pass hc.task a file or folder to have them opened again, or elsewhere."
        )
    return task_on(name, source)


def task_on(name: str, source: Source) -> Task:
    """The same; the files may be only the form that rows in memory were given."""
    opened = TASKS[name](source)
    if source.window is not None and opened.window is None:
        raise UsageError(f"Task '{name}' has no windows: --window is for causal-lm.")
    if source.stride is not None and opened.stride is None:
        raise UsageError(
            f"Task '{name}' has no rows that overlap: --stride is for question-answering, and for "
            "causal-lm with --window."
        )
    if source.template is not None and not opened.choices:
        raise UsageError(f"Task '{name}' has no prompts: --template is for multiple-choice.")
    if source.normalizer is not None and not opened.normalizer:
        raise UsageError(f"Task '{name}' compares no texts of speech: leave out --normalizer.")
    for metric in source.metrics:
        if metric not in opened.metrics:
            says = f"Task '{name}' has no metric '{metric}'"
            raise unknown(says, metric, opened.metrics, has="It has")
    return replace(opened, source=source, metrics=source.metrics or opened.metrics)
