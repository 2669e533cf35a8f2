"""transformers' Trainer with headcount's losses, row order and refusal of losses that are not
numbers; everything else (devices, precision, accumulation, checkpoints) is Trainer's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import (
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from headcount.base.errors import HeadcountError, UsageError
from headcount.models.batches import TARGETS, ModelBatch
from headcount.models.find import unwrap
from headcount.tasks.kinds.kind import TaskKind
from headcount.training.curve import LearningCurve
from headcount.training.options import TrainOptions
from headcount.training.order import EpochOrder, TrainingRows


class DivergedError(HeadcountError):
    """The loss was not a number; `step` says when."""

    def __init__(self, step: int) -> None:
        super().__init__(f"The loss was not a number (NaN or infinite) at step {step}.")
        self.step = step


class TaskTrainer(Trainer):
    """A Trainer for one of headcount's task kinds."""

    def __init__(
        self,
        *,
        kind: TaskKind,
        options: TrainOptions,
        rows: TrainingRows,
        curve: LearningCurve,
        callbacks: Sequence[TrainerCallback] = (),
        **settings: Any,
    ) -> None:
        self.task_kind = kind
        self.options = options
        self.curve = curve
        self.cached = getattr(settings["model"].config, "use_cache", None)
        """What Trainer sets to no, for `Session` to put back: generation is slow without."""
        settings |= {"train_dataset": rows, "data_collator": rows.collate}
        super().__init__(callbacks=[curve, *callbacks], **settings)
        curve.gather = self.accelerator.gather  # pyright: ignore[reportAttributeAccessIssue]
        # the loss below is divided by the labels of the whole batch already
        self.loss_is_scaled_for_ga = True
        processes = self.args.world_size
        self.order = EpochOrder(
            rows,
            seed=options.seed,
            batch=options.batch_size // options.accumulate,
            fill=processes > 1,
            like_lengths=options.like_lengths,
        )
        self.remove_callback(PrinterCallback)  # a library does not print
        self.add_callback(_SetEpoch(self.order))

    def get_train_dataloader(self) -> DataLoader:
        """Rows in `EpochOrder`, cut over the processes by accelerate."""
        loader = DataLoader(
            self.train_dataset,  # pyright: ignore[reportArgumentType]
            batch_size=self.args.per_device_train_batch_size,
            sampler=self.order,
            collate_fn=self.data_collator,
            pin_memory=self.args.dataloader_pin_memory and torch.cuda.is_available(),
        )
        return self.accelerator.prepare(loader)

    def get_batch_samples(
        self, epoch_iterator: Iterator, num_batches: int, device: torch.device
    ) -> tuple[list, Tensor | int | None]:
        """The pieces of the next step, and how many labels count in all of them everywhere.

        There are none after the last step: Trainer would take one more in a run that goes on from
        its end, where that is not the end of an epoch.
        """
        if self.state.global_step >= self.state.max_steps:
            return [], None
        pieces = list(islice(epoch_iterator, num_batches))
        counts = [self.count(piece["labels"]) for piece in pieces]
        total = torch.stack(counts).sum().to(device) if counts else torch.zeros((), device=device)
        if self.args.world_size > 1:
            total = self.accelerator.gather(total).sum()  # pyright: ignore[reportAttributeAccessIssue]
        return pieces, total

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """This piece's share of the mean loss over the whole batch."""
        total, outputs = self.total_loss(model, inputs)
        count = num_items_in_batch
        if count is None:
            count = self.count(inputs["labels"])
        # gradients are averaged over processes, but each has only its own rows in the sum
        loss = total / count * self.args.world_size
        return (loss, outputs) if return_outputs else loss

    def count(self, labels: Tensor) -> Tensor:
        """How many labels of a piece the loss is a mean over."""
        return self.task_kind.counts(labels).sum()

    def total_loss(self, model: nn.Module, inputs: dict[str, Tensor]) -> tuple[Tensor, Any]:
        """The summed loss of a piece, and what the model returned."""
        kind = self.task_kind
        batch = ModelBatch(
            kind.inputs(unwrap(model), inputs),
            inputs["labels"],
            inputs.get("examples"),
            inputs.get(TARGETS),
        )
        outputs = model(**batch.inputs)
        answers = kind.predict(outputs, batch.inputs, unwrap(model))
        smoothing = self.options.label_smoothing
        return kind.losses(answers, batch, smoothing=smoothing, total=True), outputs

    def training_step(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """Forward and backward; stops at a loss that is not a number."""
        loss = super().training_step(model, inputs, num_items_in_batch)
        if not torch.isfinite(loss):
            raise DivergedError(self.state.global_step + 1)
        self.curve.add(loss)
        return loss


class _SetEpoch(TrainerCallback):
    """Tell the order which epoch begins, also in the epoch a run is resumed in."""

    def __init__(self, order: EpochOrder) -> None:
        self.order = order

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        self.order.set_epoch(int((state.epoch or 0.0) + 1e-6))


def training_arguments(options: TrainOptions, folder: str, *, device: str) -> TrainingArguments:
    """headcount's options in Trainer's words; `checkpoints.Saver` decides when it saves."""
    precision = _precision(options.precision, device)
    arguments = TrainingArguments(
        output_dir=folder,
        num_train_epochs=options.epochs,
        max_steps=options.steps or -1,
        gradient_accumulation_steps=options.accumulate,
        learning_rate=options.learning_rate,
        lr_scheduler_type=options.schedule,
        warmup_steps=options.warmup,
        weight_decay=options.weight_decay,
        adam_beta1=options.beta1,
        adam_beta2=options.beta2,
        adam_epsilon=options.epsilon,
        max_grad_norm=options.clip,
        bf16=precision == "bf16",
        fp16=precision == "fp16",
        gradient_checkpointing=options.gradient_checkpointing,
        gradient_checkpointing_kwargs={"use_reentrant": False},
        logging_steps=options.log_every,
        logging_nan_inf_filter=False,
        save_strategy="no",
        save_total_limit=2,
        seed=options.seed,
        data_seed=options.seed,
        use_cpu=device == "cpu",
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=device != "cpu",
    )
    arguments._n_gpu = min(arguments.n_gpu, 1)  # several devices are for `accelerate launch`
    return arguments


def require_trainable(model: nn.Module, device: str, options: TrainOptions) -> None:
    """Refuse weights of a type that cannot be trained here."""
    kinds = {weight.dtype for weight in model.parameters() if weight.is_floating_point()}
    if torch.float16 in kinds:
        # Adam's epsilon (1e-8) is 0 in float16, and small steps are lost
        raise UsageError(
            "Weights in float16 cannot be trained: small steps are lost in them. Pass --dtype "
            "float32, with --precision fp16 to compute in float16, or --dtype bfloat16."
        )
    if torch.float64 in kinds and device.startswith("mps"):
        raise UsageError("mps has no float64: train in another --dtype, or with --device cpu.")
    if torch.bfloat16 in kinds and _precision(options.precision, device) == "fp16":
        raise UsageError(
            "Weights in bfloat16 are not trained with --precision fp16: pass --precision bf16, or "
            "--dtype float32."
        )


def _precision(precision: str, device: str) -> str:
    if precision != "auto":
        return precision
    if not device.startswith("cuda"):
        return "fp32"  # bf16 is several times slower on most CPUs
    return "bf16" if torch.cuda.is_bf16_supported() else "fp16"
