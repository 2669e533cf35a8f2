"""The kinds of tasks, by name; listing them imports nothing. A new one is one file and one line.

A kind is a class without fields (`kind.py` says what it has): which head loads it, how examples
become rows, what the loss of an answer is, and how answers become a score.

    kind = task_kind("causal-lm")
    kind.losses(answers, batch)         # of every label: training sums them, importance keeps them
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headcount.base.errors import UnsupportedError
from headcount.base.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor, nn

    from headcount.tasks.kinds.kind import TaskKind

TASK_KINDS = Registry("kind of task")
for _name, _where, _summary in (
    ("classification", "classification:Classification", "one of several classes for a text"),
    ("regression", "regression:Regression", "a number for a text"),
    ("masked-lm", "masked_lm:MaskedLM", "tokens that were hidden"),
    ("causal-lm", "causal_lm:CausalLM", "every next token"),
    (
        "multiple-choice",
        "multiple_choice:MultipleChoice",
        "one of several continuations of a prompt, by their log-likelihood",
    ),
    ("text-to-text", "text_to_text:TextToText", "a text written by an encoder-decoder"),
    ("translation", "text_to_text:Translation", "the same, in another language"),
    (
        "image-classification",
        "image_classification:ImageClassification",
        "one of several classes for an image",
    ),
    (
        "token-classification",
        "token_classification:TokenClassification",
        "a tag for every word, as in CoNLL columns",
    ),
    (
        "question-answering",
        "question_answering:QuestionAnswering",
        "the part of a context that answers a question, as in SQuAD",
    ),
    ("embedding", "embedding:Embedding", "a vector for a text, without labels"),
    ("similarity", "similarity:Similarity", "how alike two texts are, by their embeddings"),
    ("retrieval", "retrieval:Retrieval", "which texts answer a query, by their embeddings"),
    ("speech-recognition", "speech_recognition:SpeechRecognition", "the text that is spoken"),
):
    TASK_KINDS.add(_name, f"headcount.tasks.kinds.{_where}", _summary)


def task_kind(name: str) -> TaskKind:
    """The kind of this name."""
    return TASK_KINDS[name]()


def kind_of(model: nn.Module, answers: Tensor, labels: Tensor) -> TaskKind:
    """What the model predicts, seen from its answer; kinds that were added last are asked first."""
    for entry in reversed(list(TASK_KINDS)):
        kind = task_kind(entry.name)
        if kind.fits(model, answers, labels):
            return kind
    raise UnsupportedError(
        f"No kind of task has the answers of {type(model).__name__}, {answers.ndim} dimensions of "
        "them: name a kind with kind=, or hide heads with hc.gate(model, mask) and compare "
        "model(**batch).loss; hc.redundancy needs no labels."
    )
