"""Small sounds, and small models that hear them, for tests."""

from __future__ import annotations

import csv
import struct
from pathlib import Path

import numpy as np

WORDS = ("low", "high", "both")
RATE = 8000


def tone(word: str, seconds: float = 0.2, seed: int = 0, rate: int = RATE) -> np.ndarray:
    """A low tone, a high one, or both, with a little noise."""
    times = np.arange(int(seconds * rate)) / rate
    low, high = np.sin(2 * np.pi * 400 * times), np.sin(2 * np.pi * 1500 * times)
    sound = {"low": low, "high": high, "both": (low + high) / 2}[word]
    return 0.5 * sound + 0.02 * np.random.default_rng(seed).standard_normal(len(times))


def wav(samples: np.ndarray, rate: int = RATE, bits: int = 16, *, floats: bool = False) -> bytes:
    """A WAV file of samples (sample,) or (sample, channel) between -1 and 1."""
    samples = samples[:, None] if samples.ndim == 1 else samples
    if floats:
        data = samples.astype(f"<f{bits // 8}").tobytes()
    elif bits == 8:
        data = np.round(samples * 127 + 128).astype(np.uint8).tobytes()
    else:
        whole = np.round(samples * (2 ** (bits - 1) - 1)).astype("<i8")
        data = whole.reshape(-1, 1).view(np.uint8)[:, : bits // 8].tobytes()
    channels, block = samples.shape[1], samples.shape[1] * bits // 8
    layout = struct.pack("<HHIIHH", 3 if floats else 1, channels, rate, rate * block, block, bits)
    parts = b"WAVEfmt " + struct.pack("<I", len(layout)) + layout
    parts += b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(parts)) + parts


def write_speech(folder: Path, train: int = 4, dev: int = 2) -> Path:
    """train.csv and dev.csv with the columns audio and text, and clips/*.wav of 8 kHz."""
    (folder / "clips").mkdir(parents=True)
    seed = 0
    for split, count in (("train", train), ("dev", dev)):
        with (folder / f"{split}.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["audio", "text"])
            for word in WORDS:
                for row in range(count):
                    seed += 1
                    name = f"clips/{split}-{word}-{row}.wav"
                    (folder / name).write_bytes(wav(tone(word, 0.2 + 0.02 * row, seed)))
                    table.writerow([name, word])
    return folder


LETTERS = ("<pad>", "<s>", "</s>", "<unk>", "|", *"ABCDEFGHIJKLMNOPQRSTUVWXYZ'")


def write_ctc(folder: Path, *, mask: bool = True, weights: bool = True) -> Path:
    """A Wav2Vec2 with CTC of two layers of two heads, with its processor."""
    import json

    import torch
    from transformers import (
        Wav2Vec2Config,
        Wav2Vec2CTCTokenizer,
        Wav2Vec2FeatureExtractor,
        Wav2Vec2ForCTC,
        Wav2Vec2Processor,
    )

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {letter: number for number, letter in enumerate(LETTERS)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    tokenizer = Wav2Vec2CTCTokenizer(str(folder / "vocab.json"))
    extractor = Wav2Vec2FeatureExtractor(return_attention_mask=mask)
    Wav2Vec2Processor(extractor, tokenizer).save_pretrained(folder)
    config = Wav2Vec2Config(
        vocab_size=len(LETTERS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, conv_dim=(8, 8), conv_stride=(10, 8), conv_kernel=(10, 8),
        feat_extract_norm="layer" if mask else "group", num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2, mask_time_prob=0.0, layerdrop=0.0, pad_token_id=0,
        feat_proj_dropout=0.0, hidden_dropout=0.0, attention_dropout=0.0, final_dropout=0.0,
        do_stable_layer_norm=mask,
    )  # fmt: skip
    torch.manual_seed(0)
    if weights:
        Wav2Vec2ForCTC(config).save_pretrained(folder)
    config.architectures = ["Wav2Vec2ForCTC"]
    config.save_pretrained(folder)
    return folder


def write_whisper(folder: Path) -> Path:
    """A Whisper of one layer a stack for sounds of a second, with a tokenizer of its own."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import (
        PreTrainedTokenizerFast,
        WhisperConfig,
        WhisperFeatureExtractor,
        WhisperForConditionalGeneration,
    )

    special = ["<pad>", "<|startoftranscript|>", "<|notimestamps|>", "<|endoftext|>", "<unk>"]
    words = {word: number for number, word in enumerate([*special, *WORDS, "and", "then"])}
    backend = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.post_processor = processors.TemplateProcessing(
        single="<|startoftranscript|> <|notimestamps|> $A <|endoftext|>",
        special_tokens=[(name, words[name]) for name in special],
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", eos_token="<|endoftext|>", unk_token="<unk>",
        additional_special_tokens=special[1:3],
    )  # fmt: skip
    extractor = WhisperFeatureExtractor(feature_size=8, chunk_length=1)
    config = WhisperConfig(
        vocab_size=len(words), d_model=16, encoder_layers=2, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32,
        decoder_ffn_dim=32, num_mel_bins=8, max_source_positions=50, max_target_positions=16,
        pad_token_id=0, bos_token_id=3, eos_token_id=3, decoder_start_token_id=1,
        dropout=0.0, suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    torch.manual_seed(0)
    model = WhisperForConditionalGeneration(config)
    model.generation_config.update(
        max_length=12, no_timestamps_token_id=2, is_multilingual=False, decoder_start_token_id=1,
        pad_token_id=0, eos_token_id=3,
    )  # fmt: skip
    model.save_pretrained(folder)
    extractor.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
