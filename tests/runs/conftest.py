"""The tiny BERT and the task it learns in seconds, from the tests of training."""

from runs.kinds.asking import trained
from training.conftest import model, task, tokenizer

__all__ = ["model", "task", "tokenizer", "trained"]
