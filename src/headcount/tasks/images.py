"""Images with classes: a folder of folders (train/CLASS/*.png, dev/…), or tables of paths.

Rows are known by the content of their files, so that a folder can be moved, and an image that is
in two splits is seen.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.base.errors import NotFoundError, UsageError
from headcount.base.extras import require_extra
from headcount.tasks.files import listing, read_table
from headcount.tasks.glue import classes
from headcount.tasks.media import IMAGES, digests, files_in, files_of, read_bytes
from headcount.tasks.own import STEMS, class_sort_key, evaluated, find_splits, origin, test_as_dev
from headcount.tasks.parts import apart
from headcount.tasks.source import Source
from headcount.tasks.task import Examples, Task

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

    from headcount.tasks.encoding import EncodedRows

Labelled = tuple[list[Path], list[str]]
"""Files of images, and the class of each."""
AT_ONCE = 64
"""Images that are decoded at once."""


def image_classification(source: Source) -> Task:
    """Classes are the folders' names, or the values of the label column, sorted."""
    splits = _folder_splits(source) or _table_splits(source)
    places = {split: path for split, (path, _) in splits.items()}
    values = {label for _, (_, labels) in splits.values() for label in labels}
    names = tuple(sorted(values, key=class_sort_key))
    order = {name: name for name in names}
    rows = {
        split: Examples((digests(files),), classes(labels, order, path), files)
        for split, (path, (files, labels)) in splits.items()
    }
    divided, parts = apart(rows, origin(source))
    return Task(
        name="image-classification",
        kind="image-classification",
        texts=("image",),
        labels=names,
        numbered=False,
        called=source.called(names),
        metrics=("accuracy", "top5") if len(names) > 5 else ("accuracy", "matthews"),
        loader=divided.__getitem__,
        splits=tuple(divided),
        evaluation=evaluated(divided),
        parts=parts,
        notes=test_as_dev(places, source),
    )


def _folder_splits(source: Source) -> dict[str, tuple[Path, Labelled]]:
    """Folders of classes, by split; a folder without train or dev is one split. None: no folder."""
    if source.data is None or source.columns or source.data.is_file():
        return {}
    folder = source.folder()
    stems = {
        split: next((folder / stem for stem in names if (folder / stem).is_dir()), None)
        for split, names in STEMS.items()
    }
    picked = {split: path for split, path in stems.items() if path is not None}
    return {split: (path, _classes_in(path)) for split, path in (picked or {"dev": folder}).items()}


def _classes_in(folder: Path) -> Labelled:
    parts = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    if not parts:
        raise NotFoundError(
            f"'{folder}' has no folder for each class, as in train/cat/1.png; found "
            f"{listing(folder)}. For a table of paths pass --columns and --label."
        )
    inside = [{path.name for path in part.iterdir() if path.is_dir()} for part in parts]
    if len(parts) > 1 and len(inside[0]) > 1 and all(names == inside[0] for names in inside):
        raise UsageError(
            f"'{parts[0].name}' and '{parts[1].name}' in '{folder}' have the same folders inside "
            f"({listing(parts[0])}): if these are the classes, call the two train and dev."
        )
    loose = [path.name for path in folder.iterdir() if path.suffix.lower() in IMAGES]
    if loose:
        raise UsageError(
            f"'{min(loose)}' in '{folder}' is in none of its classes ({len(loose)} such): move it "
            "to the folder of its class, or away."
        )
    files = [(path, part.name) for part in parts for path in files_in(part, IMAGES, "image")]
    return [path for path, _ in files], [label for _, label in files]


def _table_splits(source: Source) -> dict[str, tuple[Path, Labelled]]:
    """Paths and labels of tables; paths are from the table's folder."""
    if len(source.columns) != 1 or source.label is None:
        raise UsageError(
            "Task 'image-classification' needs a folder of folders of images (--data DIR with "
            "train/CLASS/*.png), or tables with --columns PATH and --label COLUMN."
        )
    splits = {}
    for split, path in find_splits(source).items():
        table = read_table(path, [*source.columns, source.label])
        files = files_of(path, table[source.columns[0]])
        splits[split] = (path, (files, table[source.label]))
    if not splits:
        raise UsageError("Task 'image-classification' needs data: pass --data DIR or --train FILE.")
    return splits


def read_image(path: Path) -> Image:
    """One image in colours, upright; what is none, or damaged, is one sentence."""
    require_extra("images")
    from PIL import Image, ImageOps

    data = read_bytes(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a decompression bomb is only warned of
            with Image.open(io.BytesIO(data), formats=None) as file:
                image = ImageOps.exif_transpose(file)
                if image.mode.startswith("I;16"):
                    image = _of_8_bits(image)
                if image.mode in ("I", "F"):  # PIL would take all above 255 for white
                    raise ValueError(f"its pixels are numbers of 32 bits, mode {image.mode}")
                return image.convert("RGB")
    except Exception as error:  # PIL's plugins raise anything
        reason = type(error).__name__ if "BytesIO" in str(error) else str(error).strip()
        reason = (reason.splitlines() or [type(error).__name__])[0]
        raise UsageError(f"'{path}' is no image that can be read ({reason[:120]}).") from error


def _of_8_bits(image: Image) -> Image:
    """A grey image of 16 bits by its upper 8."""
    import numpy as np
    from PIL import Image

    return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))


def encode_images(files: Sequence[Path], processor: Any, labels: Any = None) -> EncodedRows:
    """Rows of pixels, as the model's own image processor makes them."""
    from headcount.tasks.encoding import EncodedRows

    pixels: list[np.ndarray] = []
    for start in range(0, len(files), AT_ONCE):
        images = [read_image(path) for path in files[start : start + AT_ONCE]]
        pixels += _processed(images, processor)
    return EncodedRows({"pixel_values": pixels}, labels)


def seen_pixels(path: Path, processor: Any) -> np.ndarray:
    """(row, column, colour) an image as the processor resizes and crops it, from 0 to 255."""
    import numpy as np

    (pixels,) = _processed([read_image(path)], processor, do_rescale=False, do_normalize=False)
    colours = np.broadcast_to(pixels, (3, *pixels.shape[1:])) if len(pixels) == 1 else pixels[:3]
    return np.rint(colours.transpose(1, 2, 0)).clip(0, 255).astype(np.uint8)


def _processed(images: Sequence[Image], processor: Any, **settings: bool) -> list[np.ndarray]:
    import numpy as np

    from headcount.models.config import silent

    try:
        with silent():
            out = processor(images=images, return_tensors="np", **settings)
        return [np.asarray(row, dtype=np.float32) for row in out["pixel_values"]]
    except Exception as error:  # a processor with settings that fit no image
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UsageError(
            f"The model's image processor fails ({reason[:200]}): is its "
            "preprocessor_config.json damaged?"
        ) from error
