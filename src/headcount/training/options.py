"""The options of a training run, and what a method that trains is given besides its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headcount.base.errors import UsageError
from headcount.base.names import require
from headcount.base.options import checked, read, to_plain
from headcount.training.logging import Logging

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from headcount.tasks.task import Task

SAVING = ("save_every", "save_minutes")


@dataclass(frozen=True, kw_only=True)
@checked
class TrainOptions:
    """How to train. The defaults are the papers': 3 epochs, 128 tokens, batches of 32."""

    epochs: float = 3.0
    """Passes over the training rows."""
    steps: int | None = None
    """Stop after this many steps, whatever the epochs."""
    batch_size: int = 32
    """Rows per step, over all processes and accumulation steps."""
    accumulate: int = 1
    """Gradient accumulation steps per batch, to save memory; the result stays the same."""
    max_length: int = 128
    """Tokens per row; longer rows are truncated."""
    learning_rate: float = 2e-5
    """Peak learning rate."""
    schedule: Literal["linear", "cosine", "constant", "inverse_sqrt"] = "linear"
    """Learning-rate schedule after the warm-up."""
    warmup: float = 0.0
    """Warm-up steps, or their fraction of all steps if below 1."""
    weight_decay: float = 0.0
    """AdamW's weight decay; biases and norms are excluded."""
    beta1: float = 0.9
    """Adam's beta 1."""
    beta2: float = 0.999
    """Adam's beta 2."""
    epsilon: float = 1e-8
    """Adam's epsilon."""
    clip: float = 1.0
    """Maximum gradient norm; 0 for no clipping."""
    label_smoothing: float = 0.0
    """Label smoothing of cross-entropies."""
    attention_dropout: float | None = None
    """Dropout of attention probabilities; the model's by default."""
    hidden_dropout: float | None = None
    """Dropout everywhere else; the model's by default."""
    freeze: int | None = None
    """Freeze the embeddings and this many of the lowest layers; none by default."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Mixed precision; auto uses it where the device is faster with it."""
    gradient_checkpointing: bool = False
    """Recompute activations instead of keeping them: less memory, more time."""
    like_lengths: bool = False
    """Batch rows of similar length: less padding, slightly less random order."""
    seed: int = 0
    """Seed of the order of the rows, dropout and masking."""
    log_every: int = 10
    """Steps between two points of the learning curve."""
    save_every: int | None = None
    """Steps between two checkpoints; by default one after every epoch."""
    save_minutes: float = 5.0
    """Also save when the last checkpoint is this many minutes old; 0 for steps only."""

    def __post_init__(self) -> None:
        above_0 = ("epochs", "learning_rate")
        at_least_1 = ("steps", "batch_size", "accumulate", "log_every", "save_every")
        not_negative = ("warmup", "clip", "freeze", "save_minutes")
        shares = ("label_smoothing", "attention_dropout", "hidden_dropout")
        rules = (
            (above_0, lambda value: value > 0, "must be above 0"),
            (at_least_1, lambda value: value >= 1, "must be at least 1"),
            (("max_length",), lambda value: value >= 2, "must be at least 2"),
            (not_negative, lambda value: value >= 0, "must not be negative"),
            (shares, lambda value: 0 <= value < 1, "must be in [0, 1)"),
        )
        problems = [
            f"{name} {rule}, not {value}"
            for names, fits, rule in rules
            for name in names
            if (value := getattr(self, name)) is not None and not fits(value)
        ]
        if problems:
            raise UsageError("; ".join(problems) + ".")

    @classmethod
    def read(cls, data: object, where: str) -> TrainOptions:
        """Options in plain data; `preset` names the options they start from."""
        if not isinstance(data, Mapping) or "preset" not in data:
            return read(cls, data, where)
        rest = {name: value for name, value in data.items() if name != "preset"}
        start = PRESETS[require("preset", str(data["preset"]), PRESETS)]
        return read(cls, to_plain(start) | rest, where)

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def identity(self) -> dict[str, object]:
        """What the weights and the learning curve depend on: all but how often a run saves."""
        return {name: value for name, value in self.to_json().items() if name not in SAVING}


TRANSLATION = TrainOptions(
    epochs=20,
    batch_size=256,
    learning_rate=1e-3,
    schedule="inverse_sqrt",
    warmup=1000,
    beta2=0.997,
    epsilon=1e-9,
    label_smoothing=0.1,
)
"""A Transformer trained for translation from scratch: Adam 0.9 / 0.997 / 1e-9, inverse square
root with warm-up (On the weak link, EMNLP 2020, §2.2). Cut its batches with `accumulate` to fit
the memory."""
POCKET = TrainOptions(learning_rate=3e-4, warmup=0.1, weight_decay=0.01)
"""Fine-tuning for the small shipped models, which need larger steps than a BERT."""
PRESETS = {"finetune": TrainOptions(), "translation": TRANSLATION, "pocket": POCKET}


@dataclass(frozen=True, kw_only=True)
class TrainingInputs:
    """A task to train on, and how."""

    task: Task
    tokenizer: PreTrainedTokenizerBase | None
    options: TrainOptions
    """How the weights are trained beside the gates."""
    device: str = "auto"
    work: Path | None = None
    """A folder in which a run can be resumed; None keeps nothing."""
    report: Callable[..., None] | None = None
    """Called with (step, all steps, newest point of the learning curve)."""
    logging: Logging = field(default_factory=Logging)
    """The trackers to log to."""
