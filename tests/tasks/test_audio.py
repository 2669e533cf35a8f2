"""WAV files of every kind, resampling, and every way they can be wrong."""

from __future__ import annotations

import io
import struct
import wave
from pathlib import Path

import numpy as np
import pytest
import scipy.io.wavfile
from transformers import Wav2Vec2FeatureExtractor, WhisperFeatureExtractor

from headcount.base.errors import HeadcountError, NotFoundError, UsageError
from headcount.tasks.audio import encode_sounds, label_tokens, read_sound, read_wav, resample
from tasks.sounds import tone, wav, write_ctc


def written(folder: Path, data: bytes) -> Path:
    path = folder / "a.wav"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("bits", "floats"), [(8, False), (16, False), (24, False), (32, False), (32, True), (64, True)]
)
@pytest.mark.parametrize("channels", [1, 2])
def test_samples_are_scipys(tmp_path, bits, floats, channels):
    sound = np.stack([tone("low"), tone("both")], axis=1)[:, :channels]
    path = written(tmp_path, wav(sound, 8000, bits, floats=floats))
    samples, rate = read_wav(path)
    wanted_rate, wanted = scipy.io.wavfile.read(path)
    wanted = wanted.astype(float).reshape(len(sound), -1)
    if bits == 8:
        wanted = (wanted - 128) / 128
    elif not floats:
        wanted /= 2.0 ** (31 if bits == 24 else bits - 1)  # scipy has 24 bits in the upper of 32
    assert rate == wanted_rate == 8000
    np.testing.assert_allclose(samples, wanted.mean(1), atol=1e-7)
    np.testing.assert_allclose(samples, sound.mean(1), atol=2.0 ** (2 - bits) + 1e-6)


def test_what_the_standard_library_writes_is_read(tmp_path):
    whole = (tone("high") * 32000).astype("<i2")
    path = tmp_path / "a.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(11025)
        file.writeframes(whole.tobytes())
    samples, rate = read_wav(path)
    assert rate == 11025
    np.testing.assert_allclose(samples, whole / 2**15, atol=1e-7)


def test_other_chunks_and_extensible_headers_and_streams(tmp_path):
    plain = wav(tone("low"))
    wanted, _ = read_wav(written(tmp_path, plain))
    listed = plain[:12] + b"LIST" + struct.pack("<I", 3) + b"abc\0" + plain[12:]
    streamed = plain[:40] + b"\xff\xff\xff\xff" + plain[44:]
    layout = struct.pack("<HHIIHH", 0xFFFE, 1, 8000, 16000, 2, 16) + struct.pack("<HHI", 22, 16, 4)
    layout += b"\x01\x00\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"
    extensible = plain[:16] + struct.pack("<I", 40) + layout + plain[36:]
    for data in (listed, streamed, extensible, plain + b"LIST"):
        np.testing.assert_array_equal(read_wav(written(tmp_path, data))[0], wanted)
    assert scipy.io.wavfile.read(io.BytesIO(extensible))[0] == 8000


@pytest.mark.parametrize(("before", "after"), [(8000, 16000), (44100, 16000), (22050, 16000)])
def test_a_resampled_sine_is_the_sine_at_the_new_rate(before, after):
    def sine(rate: int) -> np.ndarray:
        return np.sin(2 * np.pi * 440 * np.arange(rate // 2) / rate)

    again = resample(sine(before), before, after)
    middle = slice(after // 20, -after // 20)  # the filter has no samples beyond the ends
    np.testing.assert_allclose(again[middle], sine(after)[middle], atol=2e-3)


def test_what_a_lower_rate_cannot_hold_is_filtered_out():
    high = np.sin(2 * np.pi * 7000 * np.arange(16000) / 16000)
    assert np.abs(resample(high, 16000, 8000)[400:-400]).max() < 0.01


GOOD = wav(tone("low"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"ID3 some mp3", "no WAV file"),
        (GOOD[:-100], "truncated: .* announced"),
        (GOOD[:-1].replace(struct.pack("<I", len(GOOD) - 44), struct.pack("<I", len(GOOD) - 45)),
         "truncated: it ends within a sample"),
        (GOOD[:12], "damaged WAV file"),
        (wav(tone("low"), 0), "0 samples a second"),
        (wav(tone("low"), 10_000_000), "10,000,000 samples a second"),
        (GOOD[:20] + b"\x07" + GOOD[21:], "not read .format 7"),
        (GOOD[:22] + b"\x00" + GOOD[23:], "0 channels"),
        (wav(np.zeros(0)), "0 samples"),
        (wav(tone("low")[:100]), "0.013? s of sound"),
        (wav(np.zeros(800)), "silent"),
        (wav(np.full(800, 0.25)), "silent"),
        (wav(np.stack([tone("low"), -tone("low")], 1), bits=32, floats=True), "silent"),
        (wav(np.full(800, np.nan), bits=32, floats=True), "NaN or infinite"),
        (wav(3e38 * np.sign(tone("low")), 11_025, bits=32, floats=True), "or too large"),
    ],
)  # fmt: skip
def test_a_broken_sound_is_one_sentence(tmp_path, data, message):
    with pytest.raises(UsageError, match=message) as error:
        read_sound(written(tmp_path, data), 16000)
    assert "\n" not in str(error.value)


def test_features_are_the_extractors_own(tmp_path):
    sounds = [tone("low", 0.2), tone("high", 0.3)]
    files = [tmp_path / f"{number}.wav" for number in range(2)]
    for path, sound in zip(files, sounds, strict=True):
        path.write_bytes(wav(sound, 16000, 32, floats=True))
    plain = [sound.astype(np.float32) for sound in sounds]
    extractor = Wav2Vec2FeatureExtractor(return_attention_mask=True)
    rows = encode_sounds(files, extractor)
    wanted = extractor(plain, sampling_rate=16000, padding=True, return_tensors="np")
    batch = rows.collate([rows[0], rows[1]])
    np.testing.assert_allclose(batch["input_values"], wanted["input_values"], atol=1e-5)
    np.testing.assert_array_equal(batch["attention_mask"], wanted["attention_mask"])
    whisper = WhisperFeatureExtractor(feature_size=8, chunk_length=1)
    rows = encode_sounds(files, whisper)
    wanted = whisper(plain, sampling_rate=16000, return_tensors="np")["input_features"]
    np.testing.assert_allclose(np.stack(rows.columns["input_features"]), wanted, atol=1e-5)


def test_a_sound_longer_than_the_model_reads_is_refused(tmp_path):
    path = written(tmp_path, wav(tone("low", 1.5)))
    with pytest.raises(UsageError, match=r"is 1\.5 s long, and the model reads 1 s at once"):
        encode_sounds([path], WhisperFeatureExtractor(feature_size=8, chunk_length=1))
    with pytest.raises(UsageError, match="takes no sound"):
        encode_sounds([path], object())
    broken = Wav2Vec2FeatureExtractor(feature_size=1)
    broken.return_attention_mask = broken  # as a damaged file may say
    broken.padding_value = "x"
    broken.do_normalize = "x"
    broken.feature_size = 7
    broken.sampling_rate = 16000
    broken.model_input_names = None
    with pytest.raises(HeadcountError, match="feature extractor fails"):
        encode_sounds([path], broken)


def test_letters_are_in_the_case_that_the_tokenizer_knows(tmp_path):
    from headcount.models.processors import open_processor

    processor = open_processor(write_ctc(tmp_path, weights=False), frozenset({"input_values"}))
    rows = label_tokens(["Low, high!", "don't"], processor)
    assert [processor.tokenizer.decode(row, group_tokens=False) for row in rows] == [
        "LOW HIGH", "DON'T"
    ]  # fmt: skip
    with pytest.raises(UsageError, match="knows no letter of the text"):
        label_tokens(["low", "бг"], processor)
    with pytest.raises(UsageError, match="need the model's tokenizer"):
        label_tokens(["low"], processor.feature_extractor)


def test_there_is_no_such_file(tmp_path):
    with pytest.raises(NotFoundError, match="There is no file"):
        read_wav(tmp_path / "none.wav")
