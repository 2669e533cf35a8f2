"""Small images, and small models that read them, for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = ("left", "right", "upper", "lower", "ring", "all")


def write_images(folder: Path, train: int = 8, dev: int = 4, seed: int = 0) -> Path:
    """train/CLASS/*.png and dev/CLASS/*.png of 16 x 16 pixels, each class bright elsewhere."""
    rng = np.random.default_rng(seed)
    for split, count in (("train", train), ("dev", dev)):
        for number, name in enumerate(CLASSES):
            (folder / split / name).mkdir(parents=True)
            for row in range(count):
                pixels = rng.integers(0, 60, (16, 16, 3), dtype=np.uint8)
                part = [np.s_[:, :8], np.s_[:, 8:], np.s_[:8], np.s_[8:], np.s_[4:12, 4:12], ...]
                pixels[part[number]] += 150
                Image.fromarray(pixels).save(folder / split / name / f"{row}.png")
    return folder


def write_vit(folder: Path, *, labels: tuple[str, ...] = CLASSES, weights: bool = True) -> Path:
    """A ViT of two layers of two heads for images of 16 x 16, with its image processor."""
    import torch
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessorPil

    config = ViTConfig(
        image_size=16, patch_size=4, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, id2label=dict(enumerate(labels)),
        label2id={name: number for number, name in enumerate(labels)},
    )  # fmt: skip
    if weights:
        torch.manual_seed(0)
        ViTForImageClassification(config).save_pretrained(folder)
    config.save_pretrained(folder)
    ViTImageProcessorPil(size={"height": 16, "width": 16}).save_pretrained(folder)
    return folder
