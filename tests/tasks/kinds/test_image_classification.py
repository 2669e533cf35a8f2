"""Image classification from folder to pruned model: oracles for scores, losses and masks."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoImageProcessor, ViTForImageClassification, ViTImageProcessorPil

import headcount as hc
from headcount.base.errors import UnsupportedError, UsageError
from headcount.tasks import open_task
from headcount.tasks.encoding import encode
from headcount.tasks.loading import load_for_task, load_processor
from headcount.training.options import TrainOptions
from tasks.media import CLASSES, write_images, write_vit

KIND = "image-classification"


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return open_task(KIND, data=write_images(tmp_path_factory.mktemp("images")))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_vit(tmp_path_factory.mktemp("vit"))


def _logits(folder: Path, task, split: str = "dev") -> tuple[np.ndarray, np.ndarray]:
    """Logits by transformers alone, and the labels in the model's numbers."""
    from PIL import Image

    model = ViTForImageClassification.from_pretrained(folder).eval()
    processor = AutoImageProcessor.from_pretrained(folder)
    rows = task.load(split)
    images = [Image.open(path).convert("RGB") for path in rows.files]
    with torch.no_grad():
        logits = model(**processor(images=images, return_tensors="pt")).logits
    right = [model.config.label2id[task.labels[label]] for label in rows.labels]
    return logits.numpy(), np.array(right)


def test_accuracy_and_top5_are_scikit_learns(folder, task):
    from sklearn.metrics import top_k_accuracy_score

    logits, labels = _logits(folder, task)
    scores = {score.metric: score for score in hc.evaluate(folder, task).scores}
    for name, k in (("accuracy", 1), ("top5", 5)):
        wanted = top_k_accuracy_score(labels, logits, k=k, labels=np.arange(len(CLASSES)))
        assert scores[name].value == pytest.approx(wanted)
        assert scores[name].low <= wanted <= scores[name].high
    assert scores["accuracy"].value < scores["top5"].value < 1


def test_importance_is_the_gradient_by_finite_differences(folder, task):
    model = hc.load(folder).double()
    scores = hc.importance(model, task, samples=6, seed=1, tokenizer=load_processor(folder))
    assert scores.kind == KIND
    rows = task.load("train", limit=6, seed=1)
    batch = encode(task, rows, load_processor(folder)).columns["pixel_values"]
    pixels = torch.tensor(np.stack(batch)).double()
    labels = torch.tensor([model.config.label2id[task.labels[n]] for n in rows.labels])

    def losses(value: float) -> torch.Tensor:
        gates = [torch.ones(2).double(), torch.ones(2).double()]
        gates[1][0] = value
        with torch.no_grad(), hc.gate(model, {"encoder": gates}):
            return torch.nn.functional.cross_entropy(
                model(pixel_values=pixels).logits, labels, reduction="none"
            )

    slope = (losses(1 + 1e-4) - losses(1 - 1e-4)) / 2e-4
    assert scores.values[2] == pytest.approx(float(slope.abs().mean()), rel=1e-4)


def test_a_pruned_model_has_its_processor_and_the_masked_score(folder, task, tmp_path):
    result = hc.prune(
        folder, method=hc.Surgeon(), ratio=0.5, task=task, repair=(), out=tmp_path / "small"
    )
    again = hc.evaluate(tmp_path / "small", task)  # opens the processor from the folder
    masked = hc.evaluate(folder, task, result.mask)
    assert [score.value for score in again.scores] == [score.value for score in masked.scores]
    assert (tmp_path / "small" / "preprocessor_config.json").is_file()


def test_trained_from_scratch_it_learns_and_recovers(task, tmp_path):
    folder = write_vit(tmp_path / "vit", weights=False)
    trained = hc.train(
        load_for_task(folder, task, from_scratch=True), task, out=tmp_path / "out",
        options=TrainOptions(learning_rate=5e-3, epochs=25, batch_size=8),
        tokenizer=load_processor(folder),
    )  # fmt: skip
    assert trained.evaluation.score > 0.9
    small = hc.prune(
        tmp_path / "out", method=hc.Importance(), ratio=0.5, task=task, repair="recover"
    )
    assert len(small.mask.dropped) == 2


def test_redundancy_on_images_and_on_noise(folder, task):
    model, processor = hc.load(folder), load_processor(folder)
    images = hc.redundancy(model, task, "js", tokenizer=processor, samples=8)
    assert images.count == 8
    from headcount.tasks.calibration import InputOptions
    from headcount.tasks.inputs import read_inputs

    rows, name = read_inputs(model, processor, InputOptions(random=5))
    assert (len(rows), name) == (5, "noise")
    assert hc.redundancy(model, rows, "js").count == 5
    files, _ = read_inputs(
        model, processor, InputOptions(rows=task.load("dev").files[0].parent.parent)
    )
    assert len(files) == 24


def test_labels_the_model_does_not_know_are_one_sentence(task, tmp_path):
    folder = write_vit(tmp_path / "vit", labels=("cat", "dog"))
    with pytest.raises(UsageError, match="the model knows none of them"):
        hc.evaluate(folder, task)


def test_a_processor_of_another_models_size_is_one_sentence(folder, task, tmp_path):
    shutil.copytree(folder, tmp_path / "vit")
    ViTImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(tmp_path / "vit")
    said = r"cannot take 3 x 32 x 32 numbers of images .*\(16\*16\).*of another model\?$"
    with pytest.raises(UsageError, match=said):
        hc.evaluate(tmp_path / "vit", task)
    with pytest.raises(UsageError, match=said):
        hc.prune(str(tmp_path / "vit"), "importance", 0.5, task=task)
    images = hc.Calibration(rows=task.load("dev").files[0].parent)
    with pytest.raises(UsageError, match=said):
        hc.prune(str(tmp_path / "vit"), "surgeon", 0.5, calibration=images)


def test_models_and_tasks_of_other_kinds_are_refused(folder, task):
    with pytest.raises(UsageError, match="reads none"):
        hc.evaluate("pocket", task)
    with pytest.raises(UnsupportedError, match="reads images"):
        hc.evaluate(folder, "pocket-sentiment")


def test_roles_of_patches_are_those_of_a_plain_loop(folder, task):
    """Class token, neighbours in a row, and the straight line between patches."""
    model, processor = hc.load(folder), load_processor(folder)
    rows = encode(task, task.load("dev", limit=4), processor)
    found = hc.roles(model, rows)
    model.set_attn_implementation("eager")
    pixels = torch.tensor(np.stack(rows.columns["pixel_values"]))
    with torch.no_grad():
        layers = model(pixel_values=pixels, output_attentions=True).attentions
    wanted = {name: [] for name in ("first", "previous", "next", "same", "reach")}
    for attention in layers:
        for head in range(2):
            sums = {name: [] for name in wanted}
            for image in range(4):
                table = attention[image, head].numpy()
                shares = {name: [] for name in wanted}
                for query in range(16):
                    weights = table[1 + query]
                    row, column = divmod(query, 4)
                    shares["first"].append(weights[0])
                    shares["same"].append(weights[1 + query])
                    if column > 0:
                        shares["previous"].append(weights[query])
                    if column < 3:
                        shares["next"].append(weights[2 + query])
                    shares["reach"].append(
                        sum(
                            weights[1 + key] * np.hypot(key // 4 - row, key % 4 - column)
                            for key in range(16)
                        )
                    )
                for name, values in shares.items():
                    sums[name].append(np.mean(values))
            for name, values in sums.items():
                wanted[name].append(np.mean(values))
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name].values, values, rtol=1e-4, err_msg=name)
    assert found.quantities["reach"].unit == "patches"
    assert np.isnan(found["duplicate"].values).all()
