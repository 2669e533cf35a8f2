"""What turns data into a model's inputs: a tokenizer, an image processor, or a feature extractor.

All of them are one protocol to the code between a task and a model: they are opened by what the
model reads, handed to the kind of the task, and saved beside a pruned model.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypeGuard

from transformers import PreTrainedTokenizerBase

from headcount.base.errors import NotFoundError, UsageError
from headcount.base.files import read_json
from headcount.models.config import silent
from headcount.models.shipped import locate

FILES = ("preprocessor_config.json", "processor_config.json")
"""What a folder with an image processor or a feature extractor has at least one of."""
RATES = (1_000, 400_000)
"""Samples of a sound in a second, the fewest and the most."""
LARGEST_SIDE = 16_384
"""Pixels of the longest side that images are made to have."""
LARGEST_SPECTRUM = {
    "n_fft": 65_536,
    "feature_size": 4_096,
    "num_mel_bins": 4_096,
    "chunk_length": 1_800,
}
"""What makes the filters of a feature extractor large, or (seconds) what it makes of a sound."""


class Processor(Protocol):
    """What every tokenizer, image processor, feature extractor and pair of the last two can do."""

    def save_pretrained(self, save_directory: str | os.PathLike[str], /) -> object:
        """Write it into a folder, from which it is opened again."""
        ...


def is_tokenizer(processor: object) -> TypeGuard[PreTrainedTokenizerBase]:
    """Whether it makes tokens of texts, and nothing else."""
    return isinstance(processor, PreTrainedTokenizerBase)


def open_processor(name: str | os.PathLike[str], reads: frozenset[str]) -> Any:
    """The processor of a folder or a hub name for a model that `reads` pixels or sound.

    No code of theirs is run. Sound comes with a tokenizer where the folder has one.
    """
    from transformers import AutoFeatureExtractor, AutoImageProcessor, AutoProcessor

    name = locate(name)
    folder = Path(name)
    if folder.is_dir() and not any((folder / file).is_file() for file in FILES):
        raise NotFoundError(
            f"No {FILES[0]} in '{name}': it says how images or sound become the model's inputs. "
            "Copy it from the model's original folder, or pass --tokenizer FOLDER."
        )
    images = "pixel_values" in reads
    if not images:
        _require_spectrum(folder)
    first: Exception | None = None
    for kind in (AutoImageProcessor,) if images else (AutoProcessor, AutoFeatureExtractor):
        try:
            with silent():
                opened = kind.from_pretrained(name, trust_remote_code=False)
            if images:
                _require_side(opened.to_dict(), name)
            if images or rate_of(opened) is not None:
                return opened
            rate = getattr(getattr(opened, "feature_extractor", opened), "sampling_rate", None)
            if rate is not None:
                raise UsageError(
                    f"The feature extractor of '{name}' has the sampling_rate {rate!r:.40}, and "
                    f"sound has {RATES[0]:,} to {RATES[1]:,}: is its {FILES[0]} damaged?"
                )
        except UsageError:
            raise
        except Exception as error:  # a damaged file raises anything
            first = first or error
    reason = (str(first or "").strip().splitlines() or ["it is of another kind"])[0]
    what = "image processor" if images else "feature extractor"
    raise NotFoundError(f"No {what} in '{name}': {reason[:400]}") from first


def _require_spectrum(folder: Path) -> None:
    """Refuse a feature extractor without filters, or whose filters would fill the memory."""
    path = folder / FILES[0]
    written = read_json(path, "feature extractor") if path.is_file() else None
    written = written if isinstance(written, Mapping) else {}
    for key, most in LARGEST_SPECTRUM.items():
        value = written.get(key)
        # a spectrum of one line is taken for sound, and filled up to a square
        least = 2 if key == "feature_size" and "n_fft" in written else 1
        if isinstance(value, int | float) and not least <= value <= most:
            raise UsageError(
                f"The feature extractor of '{folder}' has {key} {value:,}, not {least} to "
                f"{most:,}: is its {FILES[0]} damaged?"
            )


def _require_side(settings: Mapping[str, object], name: str | os.PathLike[str]) -> None:
    """Refuse sizes that fill the memory: a damaged number is not worth waiting for."""
    for key in ("size", "crop_size", "pad_size"):
        size = settings.get(key)
        sides = size.values() if isinstance(size, Mapping) else (size,)
        for side in sides:
            if isinstance(side, int | float) and side > LARGEST_SIDE:
                raise UsageError(
                    f"The image processor of '{name}' has {key} {side:,}: images have sides of at "
                    f"most {LARGEST_SIDE:,} pixels. Is its {FILES[0]} damaged?"
                )


def rate_of(processor: object) -> int | None:
    """Samples a second that a feature extractor takes; None where it takes no sound."""
    extractor = getattr(processor, "feature_extractor", processor)
    rate = getattr(extractor, "sampling_rate", None)
    return rate if type(rate) is int and RATES[0] <= rate <= RATES[1] else None
