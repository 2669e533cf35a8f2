"""Sound: WAV files as samples at a model's rate, and as rows of its feature extractor.

Read are 8, 16, 24 and 32 bits and floats of 32 and 64, of any number of channels, which are
averaged; other rates than the model's are resampled by a polyphase filter.
"""

from __future__ import annotations

import copy
import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig

from headcount.base.errors import UsageError
from headcount.models.config import silent
from headcount.models.hooks import evaluating
from headcount.models.processors import RATES, rate_of
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.media import read_bytes
from headcount.tasks.transcripts import plain

SOUNDS = (".wav",)
INPUTS = ("input_features", "input_values", "attention_mask")
"""What a feature extractor makes that models take."""
PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
"""How samples are written, by their number in a WAV file."""
STREAMED = 0xFFFFFFFF
"""The size of a chunk whose writer did not know it: it reaches to the end."""
SHORTEST = 0.025
"""Seconds that a feature extractor looks at at once: less is no sound."""
START = "<|startoftranscript|>"
"""What Whisper's decoder begins with; it is no label."""
DEFAULT_LENGTH = 20
"""The length of texts that transformers writes where a model says nothing."""
LONGEST_TEXT = 200
"""Tokens that are written instead: half a minute of fast speech."""


def read_wav(path: Path) -> tuple[np.ndarray, int]:
    """(sample,) between -1 and 1, channels averaged, and samples a second."""
    data = read_bytes(path)
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise UsageError(
            f"'{path}' is no WAV file, the only sound that is read: convert it, as in "
            "ffmpeg -i SOUND -ar 16000 SOUND.wav."
        )
    chunks = _chunks(path, data)
    if not {b"fmt ", b"data"} <= set(chunks) or len(chunks[b"fmt "]) < 16:
        raise UsageError(f"'{path}' is a damaged WAV file: it does not say how it is written.")
    layout, sound = chunks[b"fmt "], chunks[b"data"]
    written, channels, rate, _, block, _ = struct.unpack("<HHIIHH", layout[:16])
    if written == EXTENSIBLE and len(layout) >= 26:
        written = int.from_bytes(layout[24:26], "little")
    if not RATES[0] <= rate <= RATES[1]:
        raise UsageError(
            f"'{path}' has {rate:,} samples a second by its header, and sound has {RATES[0]:,} to "
            f"{RATES[1]:,}."
        )
    width, rest = divmod(block, channels or 1)
    if not channels or rest or (written, width) not in _SAMPLES:
        raise UsageError(
            f"'{path}' is written in a way that is not read (format {written}, {channels} "
            f"channels, {block} bytes for a sample of all): convert it, as in ffmpeg -i SOUND -ar "
            "16000 -c:a pcm_s16le SOUND.wav."
        )
    if len(sound) % block:
        raise UsageError(f"'{path}' is truncated: it ends within a sample.")
    with np.errstate(invalid="ignore", over="ignore"):  # numbers of a damaged file, refused later
        samples = _SAMPLES[written, width](sound).reshape(-1, channels).mean(1)
        return samples.astype(np.float32), rate


def _chunks(path: Path, data: bytes) -> dict[bytes, bytes]:
    """The first of every kind of chunk; what follows the sound is not looked at."""
    chunks: dict[bytes, bytes] = {}
    at = 12
    while at + 8 <= len(data) and b"data" not in chunks:
        name, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        part = data[at + 8 : at + 8 + size]
        if len(part) < size and size != STREAMED:
            raise UsageError(
                f"'{path}' is truncated: {size:,} bytes of sound are announced, and {len(part):,} "
                "are there."
            )
        chunks.setdefault(name, part)
        at += 8 + size + size % 2
    return chunks


def _bits24(sound: bytes) -> np.ndarray:
    """Whole numbers of three bytes: the upper ones of four."""
    four = np.zeros((len(sound) // 3, 4), dtype=np.uint8)
    four[:, 1:] = np.frombuffer(sound, dtype=np.uint8).reshape(-1, 3)
    return four.view("<i4")[:, 0] / 2.0**31


_SAMPLES = {
    (PCM, 1): lambda sound: np.frombuffer(sound, dtype=np.uint8) / 128.0 - 1,
    (PCM, 2): lambda sound: np.frombuffer(sound, dtype="<i2") / 2.0**15,
    (PCM, 3): _bits24,
    (PCM, 4): lambda sound: np.frombuffer(sound, dtype="<i4") / 2.0**31,
    (FLOAT, 4): lambda sound: np.frombuffer(sound, dtype="<f4").astype(float),
    (FLOAT, 8): lambda sound: np.frombuffer(sound, dtype="<f8"),
}
"""Bytes to numbers between -1 and 1, by how they are written and how many bytes a sample has."""


def resample(samples: np.ndarray, before: int, after: int) -> np.ndarray:
    """The same sound at another rate, low-pass filtered where that is lower.

    >>> resample(np.ones(800), 8000, 16000).shape
    (1600,)
    """
    from scipy.signal import resample_poly

    if before == after:
        return samples
    common = math.gcd(before, after)
    return resample_poly(samples, after // common, before // common).astype(np.float32)


def read_sound(path: Path, rate: int) -> np.ndarray:
    """(sample,) at this rate; what is too short, silent or no number is one sentence."""
    samples, before = read_wav(path)
    if len(samples) < SHORTEST * before:
        raise UsageError(
            f"'{path}' has {len(samples):,} samples, {len(samples) / before:.3f} s of sound: at "
            f"least {SHORTEST} s are needed."
        )
    if np.isfinite(samples).all() and (samples == samples[0]).all():
        raise UsageError(f"'{path}' is silent: all its samples are {samples[0]:g}.")
    sound = resample(samples, before, rate)
    if not np.isfinite(sound).all():
        raise UsageError(f"'{path}' has samples that are NaN or infinite, or too large.")
    return sound


def encode_sounds(
    files: Sequence[Path], processor: Any, labels: list[list[int]] | None = None
) -> EncodedRows:
    """Rows of features, as the model's own feature extractor makes them."""
    rate = rate_of(processor)
    if rate is None:
        raise UsageError("The model's processor takes no sound: it names no sampling_rate.")
    extractor = getattr(processor, "feature_extractor", processor)
    longest = getattr(extractor, "chunk_length", None)
    columns: dict[str, list[Any]] = {}
    for path in files:
        samples = read_sound(path, rate)
        if isinstance(longest, int | float) and len(samples) > rate * longest:
            raise UsageError(
                f"'{path}' is {len(samples) / rate:.1f} s long, and the model reads {longest:g} s "
                "at once: cut it into parts."
            )
        try:
            with silent():
                out = extractor(samples, sampling_rate=rate, return_tensors="np")
            rows = {name: np.asarray(out[name][0]) for name in INPUTS if name in out}
        except Exception as error:  # an extractor with settings that fit no sound
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise UsageError(
                f"The model's feature extractor fails ({reason[:200]}): is its "
                "preprocessor_config.json damaged?"
            ) from error
        for name, row in rows.items():
            whole = np.issubdtype(row.dtype, np.integer)
            columns.setdefault(name, []).append(row.astype(np.int64 if whole else np.float32))
    return EncodedRows(columns, labels)


def label_tokens(texts: Sequence[str], processor: Any) -> list[list[int]]:
    """Tokens of what is spoken, as the model's tokenizer has them.

    One that spells texts for CTC gets them without punctuation, in the case that it knows.
    """
    tokenizer = getattr(processor, "tokenizer", None)
    if tokenizer is None:
        raise UsageError(
            "Texts of speech need the model's tokenizer beside its feature extractor: copy its "
            "tokenizer.json or vocab.json, and tokenizer_config.json, into the folder."
        )
    if not hasattr(tokenizer, "word_delimiter_token"):
        start = tokenizer.convert_tokens_to_ids(START)
        return [ids[ids[:1] == [start] :] for ids in tokenizer(list(texts))["input_ids"]]
    spelled = [plain(text) for text in texts]
    cases = ([change(text) for text in spelled] for change in (str.upper, str.lower))
    rows: list[list[list[int]]] = [tokenizer(case)["input_ids"] for case in cases]
    unknown = tokenizer.unk_token_id
    best = min(rows, key=lambda case: sum(row.count(unknown) for row in case))
    for text, row in zip(texts, best, strict=True):
        if not {*row} - {unknown}:
            raise UsageError(f"The model's tokenizer knows no letter of the text {text!r:.60}.")
    return best


def sound_settings(model: Any, beams: int = 1) -> GenerationConfig:
    """The model's own way to write, without sampling."""
    settings = copy.deepcopy(model.generation_config)
    settings.update(num_beams=beams, do_sample=False)
    if settings.max_new_tokens is None and settings.max_length in (None, DEFAULT_LENGTH):
        positions = getattr(model.config, "max_target_positions", None) or 2 * LONGEST_TEXT
        settings.max_new_tokens = min(LONGEST_TEXT, positions // 2)
    return settings


def with_own_texts(model: Any, rows: EncodedRows, processor: Any) -> EncodedRows:
    """Rows without texts, for a decoder: what the model itself hears in them."""
    if not getattr(model.config, "is_encoder_decoder", False):
        return rows
    if not model.can_generate():  # it has no words, only their beginning
        return replace(rows, labels=label_tokens([""] * len(rows), processor))
    texts, settings = [""] * len(rows), sound_settings(model)
    device = next(model.parameters()).device
    with torch.inference_mode(), evaluating(model):
        for numbers, batch in rows.batches():
            moved = {name: value.to(device) for name, value in batch.items()}
            written = model.generate(**moved, generation_config=settings)
            heard = processor.batch_decode(written, skip_special_tokens=True)
            for number, text in zip(numbers, heard, strict=True):
                texts[number] = text
    return replace(rows, labels=label_tokens(texts, processor))
