"""Fine-tune, pre-train and evaluate, on transformers' Trainer and accelerate."""

from typing import TYPE_CHECKING

from headcount.base.lazy import lazily

if TYPE_CHECKING:
    from headcount.training.curve import LearningCurve as LearningCurve
    from headcount.training.evaluation import Evaluation as Evaluation
    from headcount.training.finetune import TrainingResult as TrainingResult
    from headcount.training.logging import Logging as Logging
    from headcount.training.options import PRESETS as PRESETS
    from headcount.training.options import TrainOptions as TrainOptions
    from headcount.training.scoring import Scoring as Scoring

__getattr__, __dir__ = lazily(__name__)
