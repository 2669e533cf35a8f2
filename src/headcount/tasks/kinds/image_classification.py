"""One of several classes for an image."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from torch import Tensor, nn

from headcount.base.errors import UsageError
from headcount.models.processors import Processor
from headcount.tasks.encoding import EncodedRows, RowOptions
from headcount.tasks.formulas import NEAR
from headcount.tasks.images import encode_images
from headcount.tasks.kinds.classification import Classification
from headcount.tasks.kinds.kind import PredictionTable
from headcount.tasks.metrics import Outcome
from headcount.tasks.rows import ScoredRows
from headcount.tasks.task import Examples

TOP = 5


class ImageClassification(Classification):
    """Classes as for texts; a row is the pixels of one file."""

    name: ClassVar = "image-classification"
    head: ClassVar = "image-classification"
    saved_as: ClassVar = ("ForImageClassification",)
    reads: ClassVar = ("pixel_values",)

    def fits(self, model: nn.Module, answers: Tensor, labels: Tensor) -> bool:
        """Classes are classes: without a task nothing tells images from texts, or has to."""
        return False

    def encode(self, examples: Examples, processor: Processor, options: RowOptions) -> EncodedRows:
        """Pixels, through the model's own image processor."""
        if examples.files is None:
            raise UsageError("Rows of image-classification are files of images, not texts.")
        return encode_images(examples.files, processor, examples.labels)

    def score(self, kept: np.ndarray, scored: ScoredRows) -> tuple[Outcome, PredictionTable]:
        """Classes; a wrong one is marked where the right one is among the five highest."""
        outcome, table = super().score(kept, scored)
        labels, order = scored.examples.labels, scored.order
        assert labels is not None
        assert order is not None
        predictions = np.asarray(outcome.predictions)
        right = order[labels]
        above = (kept > kept[np.arange(len(kept)), right][:, None]).sum(1)
        near = (above < TOP) & (predictions != labels)
        return Outcome(np.where(near, predictions + NEAR, predictions), labels), table
