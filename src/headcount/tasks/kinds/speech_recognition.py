"""The text that is spoken: written by an encoder-decoder (Whisper), or aligned by CTC (Wav2Vec2).

A CTC model answers with a letter, or a blank, for every frame; a text's probability is the sum
over all ways to write it along the frames. Letters drawn frame by frame from the model's own
prediction, with repetitions and blanks left out, are thus a text drawn from exactly that
probability.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from headcount.base.errors import UnsupportedError, UsageError
from headcount.models.batches import ModelBatch, model_inputs, shift_labels
from headcount.models.find import unwrap
from headcount.models.probe import reads_text
from headcount.tasks.audio import INPUTS, encode_sounds, label_tokens
from headcount.tasks.encoding import IGNORED, EncodedRows, RowOptions
from headcount.tasks.kinds.kind import PredictionTable, TaskKind, draw_classes, where_labelled
from headcount.tasks.metrics import Outcome
from headcount.tasks.rows import ScoredRows
from headcount.tasks.task import Examples
from headcount.tasks.transcripts import NORMALIZERS

NEVER = -1e4
"""The logit of what has probability 0: finite, so that gradients are."""


class SpeechRecognition(TaskKind):
    """A decoder learns every token of the text; a CTC model the text as a whole.

    Answers of a CTC model have the blank as their last class, wherever the model has it, and
    nothing but blanks behind the end of a sound.
    """

    name: ClassVar = "speech-recognition"
    head: ClassVar = "speech"
    saved_as: ClassVar = (
        "ForConditionalGeneration", "ForSpeechSeq2Seq", "SpeechEncoderDecoderModel", "ForCTC",
        "ForSpeechToText",
    )  # fmt: skip
    reads: ClassVar = ("input_features", "input_values")
    generation: ClassVar = INPUTS

    def fits(self, model: nn.Module, answers: Tensor, labels: Tensor) -> bool:
        """A model that is called CTC, or a decoder of sound."""
        ctc = "ForCTC" in type(model).__name__
        return answers.ndim == 3 and (
            ctc or (self.generates(model) and not reads_text(type(model)))
        )

    def generates(self, model: nn.Module) -> bool:
        """Where there is a decoder."""
        return bool(getattr(getattr(model, "config", None), "is_encoder_decoder", False))

    def encode(self, examples: Examples, processor: Any, options: RowOptions) -> EncodedRows:
        """Features of the files; labels are tokens of the texts."""
        if examples.files is None:
            raise UsageError("Rows of speech-recognition are files of sound, not texts.")
        texts = [str(text) for text in examples.texts[1]]
        return encode_sounds(examples.files, processor, label_tokens(texts, processor))

    def inputs(self, model: nn.Module, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """A decoder reads the labels, one behind."""
        if self.generates(model):
            shifted = shift_labels(model, batch["labels"])
            if shifted is None:
                raise UnsupportedError(f"{type(model).__name__} does not say what it starts with.")
            batch = batch | {"decoder_input_ids": shifted}
        return model_inputs(model, {name: batch[name] for name in batch if name != "labels"})

    def predict(self, outputs: Any, inputs: dict[str, Any], model: nn.Module) -> Tensor:
        """Words of a decoder, or letters with the blank behind them."""
        if "decoder_input_ids" in inputs:
            return outputs.logits
        return _with_blank_last(outputs.logits, inputs.get("attention_mask"), unwrap(model))

    def require_labels(self, answers: Tensor, labels: Tensor) -> None:
        """A label for every answer of a decoder; any number of letters with CTC."""
        if labels.shape == answers.shape[:-1]:
            super().require_labels(answers, labels)
        else:
            self.require_as_many(
                answers.shape[:-1], labels, labels.ndim == 2 and len(labels) == len(answers)
            )
            super().require_labels(answers.new_zeros(*labels.shape, answers.shape[-1] - 1), labels)

    def losses(
        self, answers: Tensor, batch: ModelBatch, *, smoothing: float = 0.0, total: bool = False
    ) -> Tensor:
        """Cross-entropies of words; or (row,) -log p of texts by CTC, which is not smoothed."""
        labels = batch.labels
        assert labels is not None
        if "decoder_input_ids" in batch.inputs:
            return super().losses(answers, batch, smoothing=smoothing, total=total)
        frames = torch.full((len(answers),), answers.shape[1], device=answers.device)
        counts = self.counts(labels)
        with torch.backends.cudnn.flags(enabled=False):
            losses = functional.ctc_loss(
                answers.log_softmax(-1).transpose(0, 1),
                labels.clamp_min(0),
                frames,
                counts.sum(1),
                blank=answers.shape[-1] - 1,
                reduction="none",
            )
        if (losses >= -NEVER).any():
            longest = int(counts.sum(1).max())
            raise UsageError(
                f"A text of up to {longest} letters is longer than its sound: the model has at "
                f"most {answers.shape[1]} frames, one for every letter and between equal ones."
            )
        return losses.sum() if total else losses

    def sample_labels(
        self, answers: Tensor, batch: ModelBatch, generator: torch.Generator
    ) -> Tensor:
        """A word for every token of the decoder; with CTC a letter or blank for every frame."""
        drawn = draw_classes(answers, generator)
        if "decoder_input_ids" in batch.inputs:
            return where_labelled(drawn, batch, "decoder")
        letters = [row[keep] for row, keep in zip(drawn, _letters(drawn, answers), strict=True)]
        size = max(1, *map(len, letters))
        padded = [functional.pad(row, (0, size - len(row)), value=IGNORED) for row in letters]
        return torch.stack(padded)

    def read(self, answers: Tensor, batch: ModelBatch) -> Tensor:
        """(row, frame) one more than the letter that begins there, by CTC; 0 where none does."""
        best = answers.argmax(-1)
        letters = torch.where(_letters(best, answers), best + 1, 0).double()
        return letters.masked_fill(~answers.isfinite().all(-1), torch.nan)

    def decode(self, kept: np.ndarray, processor: Any) -> list[str]:
        """Texts of letters; a blank between equal ones, which a tokenizer would take for one."""
        tokenizer = processor.tokenizer
        blank = tokenizer.pad_token_id
        special = {tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id}
        rows: list[list[int]] = []
        for row in kept:
            rows.append([])
            for letter in (row[row > 0] - 1).astype(int).tolist():
                if letter not in special:
                    rows[-1] += [blank] * (rows[-1][-1:] == [letter]) + [letter]
        return [str(text) for text in tokenizer.batch_decode(rows)]

    def score(self, kept: list[str], scored: ScoredRows) -> tuple[Outcome, PredictionTable]:
        """Texts beside texts, both normalised; the table has them as they are."""
        files, wanted = scored.examples.files, [str(text) for text in scored.examples.texts[1]]
        assert files is not None
        table = {"row": np.arange(len(kept)), "source": [path.name for path in files]}
        normal = NORMALIZERS[scored.task.normalizer]
        texts = [[normal(text) for text in column] for column in (kept, wanted)]
        return Outcome(*texts), table | {"label": wanted, "prediction": kept}


def _with_blank_last(logits: Tensor, mask: Tensor | None, model: Any) -> Tensor:
    """(row, frame, letter and blank) as if every frame behind the end of a sound were a blank.

    The outputs may be of several copies of the batch that the mask is of.
    """
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    blank = model.config.pad_token_id or 0
    one = functional.one_hot(torch.tensor(blank), logits.shape[-1]).bool().to(logits.device)
    answers = torch.cat([logits.masked_fill(one, NEVER), logits[..., blank : blank + 1]], dim=-1)
    lengths = getattr(model, "_get_feat_extract_output_lengths", None)
    lengths = lengths or getattr(model, "_get_subsampling_output_length", None)
    if mask is None or lengths is None:
        return answers
    ends = lengths(mask.sum(1)).repeat(len(answers) // len(mask))
    behind = torch.arange(answers.shape[1], device=answers.device) >= ends[:, None]
    nothing = torch.full_like(answers[0, 0], NEVER)
    nothing[-1] = 0.0
    return torch.where(behind[..., None], nothing, answers)


def _letters(frames: Tensor, answers: Tensor) -> Tensor:
    """(row, frame) where a letter begins: no blank, and not the letter of the frame before."""
    before = functional.pad(frames[:, :-1], (1, 0), value=-1)
    return (frames != answers.shape[-1] - 1) & (frames != before)
