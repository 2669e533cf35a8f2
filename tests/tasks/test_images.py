"""Tasks on images: folders of folders, tables of paths, and every way they can be wrong."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from transformers import ViTImageProcessorPil
from transformers.image_utils import load_image

from headcount.base.errors import HeadcountError, NotFoundError, UsageError
from headcount.tasks import open_task
from headcount.tasks.images import encode_images, read_image
from tasks.media import CLASSES, write_images

KIND = "image-classification"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_images(tmp_path_factory.mktemp("images"))


def test_a_folder_of_folders(folder):
    task = open_task(KIND, data=folder)
    assert (task.labels, task.splits) == (tuple(sorted(CLASSES)), ("train", "dev"))
    assert task.metrics == ("accuracy", "top5")
    dev = task.load("dev")
    assert len(dev) == 24
    for path, label in zip(dev.files, dev.labels, strict=True):
        assert path.parent.name == task.labels[label]


def test_a_table_of_paths_has_the_same_rows(folder, tmp_path):
    task = open_task(KIND, data=folder)
    rows = {split: task.load(split) for split in ("train", "dev")}
    for split, examples in rows.items():
        with (tmp_path / f"{split}.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["path", "class"])
            for path, label in zip(examples.files, examples.labels, strict=True):
                table.writerow([path, task.labels[label]])
    other = open_task(KIND, data=tmp_path, columns="path", label="class")
    for split, examples in rows.items():
        assert other.load(split).texts == examples.texts
        np.testing.assert_array_equal(other.load(split).labels, examples.labels)


def test_one_folder_of_classes_is_split(folder):
    task = open_task(KIND, data=folder / "train")
    assert task.splits == ("train", "dev", "all")
    texts = [set(task.load(split).texts[0]) for split in ("train", "dev")]
    assert not texts[0] & texts[1]
    assert len(task.load("all")) == 48


def test_rows_are_known_by_their_content(folder, tmp_path):
    image = tmp_path / "some" / "where.png"
    image.parent.mkdir()
    (tmp_path / "other").mkdir()
    first = folder / "dev" / "ring" / "0.png"
    image.write_bytes(first.read_bytes())
    (tmp_path / "other" / "1.png").write_bytes((folder / "dev" / "ring" / "1.png").read_bytes())
    task = open_task(KIND, data=folder)
    dev = task.load("dev")
    at = dev.files.index(first)
    assert open_task(KIND, data=tmp_path).load("all").texts[0][1] == dev.texts[0][at]


def test_pixels_are_what_the_processor_makes(folder):
    files = open_task(KIND, data=folder).load("dev").files[:3]
    processor = ViTImageProcessorPil(size={"height": 16, "width": 16})
    rows = encode_images(files, processor)
    wanted = np.stack([np.asarray(Image.open(path), dtype=float) for path in files])
    wanted = (wanted.transpose(0, 3, 1, 2) / 255 - 0.5) / 0.5
    np.testing.assert_allclose(np.stack(rows.columns["pixel_values"]), wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"not an image", "no image that can be read"),
        ("half", "no image that can be read"),
        ("bomb", "no image that can be read"),
    ],
)
def test_a_broken_image_is_one_sentence(folder, tmp_path, data, message, monkeypatch):
    good = (folder / "dev" / "ring" / "0.png").read_bytes()
    if data == "bomb":
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    path = tmp_path / "x.png"
    path.write_bytes(good[: len(good) // 2] if data == "half" else good if data == "bomb" else data)
    with pytest.raises(UsageError, match=message) as error:
        read_image(path)
    assert "\n" not in str(error.value)


def test_every_mode_has_the_same_pixels(tmp_path):
    """PIL itself takes all greys above 255 of 65,535 for white."""
    grey = (np.arange(64, dtype=np.uint8).reshape(8, 8) * 4)[:, ::-1]
    Image.fromarray(grey).save(tmp_path / "8.png")
    Image.fromarray(grey.astype(np.uint16) * 257).save(tmp_path / "16.png")
    Image.fromarray(grey.astype(np.uint16) * 257).save(tmp_path / "16.tif")
    for mode in ("RGB", "RGBA", "P"):
        Image.fromarray(grey).convert(mode).save(tmp_path / f"{mode}.png")
    Image.fromarray(grey).convert("RGB").convert("CMYK").save(tmp_path / "CMYK.tif")
    for path in sorted(tmp_path.iterdir()):
        np.testing.assert_array_equal(np.asarray(read_image(path)), np.stack([grey] * 3, -1))
    Image.fromarray(grey.astype(np.float32)).save(tmp_path / "float.tif")
    with pytest.raises(UsageError, match=r"no image that can be read \(its pixels are numbers"):
        read_image(tmp_path / "float.tif")


def test_a_picture_of_a_turned_camera_is_upright(tmp_path):
    """As transformers' own load_image reads it."""
    grey = (np.arange(48, dtype=np.uint8).reshape(6, 8) * 5)[:, ::-1]
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.fromarray(grey).save(tmp_path / "turned.png", exif=turned)
    expected = np.asarray(load_image(str(tmp_path / "turned.png")))
    np.testing.assert_array_equal(np.asarray(read_image(tmp_path / "turned.png")), expected)
    assert expected.shape == (8, 6, 3)


def test_what_is_not_there(tmp_path):
    (tmp_path / "train").mkdir()
    with pytest.raises(NotFoundError, match="no folder for each class"):
        open_task(KIND, data=tmp_path)
    (tmp_path / "train" / "cat").mkdir()
    with pytest.raises(NotFoundError, match="There is no image in"):
        open_task(KIND, data=tmp_path)
    with pytest.raises(UsageError, match="needs a folder of folders"):
        open_task(KIND)
    (tmp_path / "t.csv").write_text("path,label\nnone.png,a\n")
    with pytest.raises(NotFoundError, match=r"t.csv' row 1: there is no file '.*none.png'"):
        open_task(KIND, data=tmp_path / "t.csv", columns="path", label="label")


def test_splits_of_another_name_are_not_taken_for_classes(tmp_path):
    """Train and Test as two classes: a model would learn to tell them apart, without a word."""
    folder = write_images(tmp_path)
    for name in ("train", "dev"):
        (folder / name).rename(folder / name.title())
    with pytest.raises(UsageError, match=r"'Dev' and 'Train' in .* call the two train and dev"):
        open_task(KIND, data=folder)


def test_an_image_of_no_class_is_not_left_out(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "there")
    picture = next((tmp_path / "there").rglob("*.png"))
    shutil.copy(picture, tmp_path / "there" / "train" / "loose.PNG")
    with pytest.raises(UsageError, match=r"'loose.PNG' in .*train' is in none of its classes"):
        open_task("image-classification", data=tmp_path / "there")


def test_a_processor_that_fails_is_one_sentence(folder):
    files = open_task(KIND, data=folder).load("dev").files[:1]
    processor = ViTImageProcessorPil(size={"height": 16, "width": 16}, image_mean=[0.5] * 7)
    with pytest.raises(HeadcountError, match="image processor fails"):
        encode_images(files, processor)
