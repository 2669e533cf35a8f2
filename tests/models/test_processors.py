"""Processors: opened by what a model reads, saved beside it, refused in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headcount.base.errors import NotFoundError, UsageError
from headcount.models.fingerprint import tokenizer_fingerprint
from headcount.models.processors import is_tokenizer, open_processor, rate_of
from headcount.tasks.loading import load_processor
from tasks.media import write_vit

PIXELS = frozenset({"pixel_values"})


def test_a_model_of_images_has_an_image_processor(tmp_path: Path) -> None:
    folder = write_vit(tmp_path / "vit", weights=False)
    processor = load_processor(folder)
    assert not is_tokenizer(processor)
    assert processor.size == {"height": 16, "width": 16}
    assert is_tokenizer(load_processor("pocket"))


def test_its_fingerprint_is_of_its_settings(tmp_path: Path) -> None:
    folder = write_vit(tmp_path / "vit", weights=False)
    processor = open_processor(folder, PIXELS)
    before = tokenizer_fingerprint(processor)
    processor.save_pretrained(tmp_path / "again")
    assert tokenizer_fingerprint(open_processor(tmp_path / "again", PIXELS)) == before
    processor.image_mean = [0.1, 0.2, 0.3]
    assert tokenizer_fingerprint(processor) != before


def test_one_that_is_missing_or_damaged_is_one_sentence(tmp_path: Path) -> None:
    folder = write_vit(tmp_path / "vit", weights=False)
    (folder / "preprocessor_config.json").write_text("{")
    with pytest.raises(NotFoundError, match="No image processor in") as error:
        open_processor(folder, PIXELS)
    assert "\n" not in str(error.value)
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(NotFoundError, match=r"No preprocessor_config.json in"):
        open_processor(folder, PIXELS)


@pytest.mark.parametrize("size", [{"height": 16, "width": 16_000_000}, {"shortest_edge": 1e9}])
def test_sizes_that_fill_the_memory_are_refused(tmp_path: Path, size: dict[str, float]) -> None:
    write_vit(tmp_path)
    file = tmp_path / "preprocessor_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"size": size}))
    with pytest.raises(UsageError, match="sides of at most 16,384 pixels"):
        open_processor(tmp_path, frozenset({"pixel_values"}))


@pytest.mark.parametrize("rate", [0, 7, -5, 10**9, 8000.5, "x", True])
def test_rates_that_no_sound_has_are_refused(tmp_path: Path, rate: object) -> None:
    from transformers import Wav2Vec2FeatureExtractor

    Wav2Vec2FeatureExtractor().save_pretrained(tmp_path)
    file = tmp_path / "preprocessor_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"sampling_rate": rate}))
    with pytest.raises(UsageError, match=r"sampling_rate .*, and sound has 1,000 to 400,000"):
        open_processor(tmp_path, frozenset({"input_values"}))


@pytest.mark.parametrize(
    ("key", "value"),
    [("n_fft", 4e8), ("feature_size", 1e9), ("feature_size", True), ("chunk_length", 16_000)],
)
def test_filters_that_fill_the_memory_or_are_none_are_refused(
    tmp_path: Path, key: str, value: float
) -> None:
    from transformers import WhisperFeatureExtractor

    WhisperFeatureExtractor().save_pretrained(tmp_path)
    file = tmp_path / "preprocessor_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))
    with pytest.raises(UsageError, match=f"has {key} .*, not [12] to .* damaged"):
        open_processor(tmp_path, frozenset({"input_features"}))


def test_sound_has_a_rate() -> None:
    from transformers import Wav2Vec2FeatureExtractor

    assert rate_of(Wav2Vec2FeatureExtractor(sampling_rate=8000)) == 8000
    assert rate_of(object()) is None
