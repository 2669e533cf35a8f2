"""Speech recognition from folder to pruned model: oracles for decoding, losses, Fisher, masks."""

from __future__ import annotations

import shutil
from itertools import groupby, product
from pathlib import Path

import jiwer
import numpy as np
import pytest
import torch
from torch.nn import functional
from transformers import (
    AutoProcessor,
    Wav2Vec2ForCTC,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
)

import headcount as hc
from headcount.base.errors import UsageError
from headcount.heads import Mask
from headcount.models.batches import ModelBatch, batches_for
from headcount.models.find import layout, sites_of
from headcount.models.gates import open_gates
from headcount.models.watch import watching
from headcount.pruning.second_order import collect
from headcount.sensitivity.gradients import answers_of, example_losses
from headcount.tasks import open_task
from headcount.tasks.audio import read_sound
from headcount.tasks.encoding import IGNORED, encode
from headcount.tasks.kinds import kind_of, task_kind
from headcount.tasks.loading import load_for_task, load_processor
from headcount.tasks.transcripts import plain
from headcount.training.options import TrainOptions
from tasks.sounds import LETTERS, write_ctc, write_speech, write_whisper

KIND = "speech-recognition"
FAMILIES = ("whisper", "ctc")


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return open_task(KIND, data=write_speech(tmp_path_factory.mktemp("speech") / "data"))


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {"whisper": write_whisper(folder / "whisper"), "ctc": write_ctc(folder / "ctc")}


def _rows(folder: Path, task, split: str = "dev"):
    processor = load_processor(folder)
    return encode(task, task.load(split), processor), processor


def test_letters_by_ctc_are_transformers_own(folders, task):
    """One file at a time, without padding: the padding of a batch changes nothing."""
    model = Wav2Vec2ForCTC.from_pretrained(folders["ctc"]).eval()
    processor = AutoProcessor.from_pretrained(folders["ctc"])
    rows = task.load("dev")
    texts = []
    for path in rows.files:
        inputs = processor(read_sound(path, 16000), sampling_rate=16000, return_tensors="pt")
        with torch.no_grad():
            texts += processor.batch_decode(model(**inputs).logits.argmax(-1))
    evaluation = hc.evaluate(folders["ctc"], task)
    assert evaluation.predictions["prediction"] == texts
    assert any(texts)
    normal = [[plain(text) for text in column] for column in (rows.texts[1], texts)]
    assert evaluation.scores[0].value == pytest.approx(jiwer.wer(*normal))
    assert evaluation.scores[1].value == pytest.approx(jiwer.cer(*normal))


def test_texts_by_a_decoder_are_transformers_own(folders, task):
    model = WhisperForConditionalGeneration.from_pretrained(folders["whisper"]).eval()
    with torch.no_grad():
        for number, weight in enumerate(model.parameters()):  # so that it writes something
            weight += torch.randn(weight.shape, generator=torch.Generator().manual_seed(number))
    processor = load_processor(folders["whisper"])
    features = [
        processor.feature_extractor(
            read_sound(path, 16000), sampling_rate=16000, return_tensors="pt"
        )
        for path in task.load("dev").files
    ]
    texts = [
        processor.batch_decode(model.generate(**row, num_beams=1), skip_special_tokens=True)[0]
        for row in features
    ]
    evaluation = hc.evaluate(model, task, tokenizer=processor)
    assert evaluation.predictions["prediction"] == [text.strip() for text in texts]
    assert any(texts)


def test_equal_letters_with_a_blank_between_stay_two(folders):
    kind, processor = task_kind(KIND), load_processor(folders["ctc"])
    frames = [LETTERS.index(letter) for letter in ("<pad>", "L", "L", "<pad>", "L", "O", "|", "A")]
    logits = torch.full((1, len(frames), len(LETTERS) + 1), -9.0)
    for at, letter in enumerate(frames):
        logits[0, at, letter or -1] = 9.0
    kept = kind.read(logits, ModelBatch({}, None)).numpy()
    assert kind.decode(kept, processor) == ["LLO A"]
    assert processor.batch_decode(torch.tensor([frames])) == ["LLO A"]


@pytest.mark.parametrize("mask", [True, False])
def test_the_loss_by_ctc_is_transformers_own(task, tmp_path, mask):
    folder = write_ctc(tmp_path, mask=mask)
    rows, _ = _rows(folder, task)
    model = hc.load(folder).double()
    batch = rows.collate([rows[row] for row in range(len(rows))])
    batch["input_values"] = batch["input_values"].double()
    model.config.ctc_loss_reduction = "sum"
    wanted = model(**batch).loss
    kind, answers = answers_of(model, next(batches_for(model, [batch])), None)
    assert kind.name == KIND
    losses = kind.losses(answers, ModelBatch({}, batch["labels"]))
    torch.testing.assert_close(losses.sum().float(), wanted, rtol=1e-5, atol=0)
    means, counted = example_losses(kind, answers, ModelBatch({}, batch["labels"]))
    lengths = (batch["labels"] != IGNORED).sum(1)
    torch.testing.assert_close(means, losses / lengths)
    assert counted.all()


def test_labels_drawn_by_ctc_have_the_probability_of_their_text():
    """Over three frames and two letters every path is enumerated."""
    kind = task_kind(KIND)
    answers = torch.randn(1, 3, 3, generator=torch.Generator().manual_seed(0))
    chances = answers[0].softmax(-1)
    texts: dict[tuple[int, ...], float] = {}
    for path in product(range(3), repeat=3):
        text = tuple(letter for letter, _ in groupby(path) if letter != 2)
        chance = float(torch.stack([chances[at, letter] for at, letter in enumerate(path)]).prod())
        texts[text] = texts.get(text, 0.0) + chance
    for text, chance in texts.items():
        labels = torch.tensor([[*text, IGNORED]])
        loss = kind.losses(answers, ModelBatch({}, labels))
        assert float(loss) == pytest.approx(-np.log(chance), rel=1e-5)
    draws = 4000
    batch = ModelBatch({}, None)
    generator = torch.Generator().manual_seed(1)
    drawn = kind.sample_labels(answers.expand(draws, -1, -1), batch, generator).tolist()
    kept = [tuple(letter for letter in row if letter != IGNORED) for row in drawn]
    for text, chance in texts.items():
        assert kept.count(text) / draws == pytest.approx(chance, abs=0.03)


@pytest.mark.parametrize("family", FAMILIES)
def test_importance_is_the_gradient_by_finite_differences(folders, task, family):
    rows, _ = _rows(folders[family], task)
    model = hc.load(folders[family]).double()
    batch = {k: v.double() if v.is_floating_point() else v
             for k, v in rows.collate([rows[row] for row in range(3)]).items()}  # fmt: skip
    scores = hc.importance(model, [batch], kind=KIND)
    heads = layout(model)
    batch = next(batches_for(model, [batch]))
    for stack, index in (("encoder", 1), ([*heads][-1].stack, 0)):

        def losses(value: float, stack: str = stack, index: int = index) -> torch.Tensor:
            gates = open_gates(heads, trainable=False, dtype=torch.double)
            with torch.no_grad():
                gates[stack][0][index] = value
            with torch.no_grad(), hc.gate(model, gates):
                kind, answers = answers_of(model, batch, task_kind(KIND))
                return example_losses(kind, answers, batch)[0]

        slope = (losses(1 + 1e-4) - losses(1 - 1e-4)) / 2e-4
        at = [tuple(head) for head in heads].index((stack, 0, index))
        assert scores.values[at] == pytest.approx(float(slope.abs().mean()), rel=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_surgeons_fisher_is_that_of_each_example_alone(folders, task, family):
    """G by brute force: labels drawn for a batch, then a backward pass for every file."""
    rows, _ = _rows(folders[family], task)
    model = hc.load(folders[family])
    sums = collect(model, rows.take([0, 1, 2]), seed=3)
    batch = next(batches_for(model, rows.take([0, 1, 2])))
    kind = task_kind(KIND)
    with torch.no_grad():
        answers = answers_of(model, batch, kind)[1]
    labels = kind.sample_labels(answers, batch, torch.Generator().manual_seed(3))
    site = sites_of(model)[-1]
    total = torch.zeros(16, 16, dtype=torch.double)
    order = np.concatenate([numbers for numbers, _ in rows.take([0, 1, 2]).batches()])
    assert len(order) == len(labels) == 3
    for row in range(3):
        one = {name: value[row : row + 1] if torch.is_tensor(value) else value
               for name, value in batch.inputs.items()}  # fmt: skip
        taken: list[torch.Tensor] = []
        with watching(model, [(taken, site.out)], lambda kept, args, out: kept.append(out) or out):
            outputs = kind.predict(model(**one), one, model)
        label = labels[row : row + 1]
        if family == "ctc":
            text = label[label != IGNORED]
            frames = torch.tensor([outputs.shape[1]])
            loss = functional.ctc_loss(
                outputs.log_softmax(-1).transpose(0, 1), text[None], frames,
                torch.tensor([len(text)]), blank=outputs.shape[-1] - 1, reduction="sum",
            ) / max(1, len(text))  # fmt: skip
        else:
            loss = functional.cross_entropy(outputs[0], label[0], ignore_index=IGNORED)
        grad = torch.autograd.grad(loss, taken)[0][0].double()
        total += grad.T @ grad
    _, fisher, _ = sums[site.stack, site.layer].normal()
    count = sums[site.stack, site.layer].tokens
    np.testing.assert_allclose(fisher * count, total, rtol=2e-3, atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pruned_model_has_its_processor_and_the_masked_score(folders, task, family, tmp_path):
    result = hc.prune(
        folders[family], method=hc.Surgeon(), ratio=0.5, task=task, repair=(), out=tmp_path / "s"
    )
    again = hc.evaluate(tmp_path / "s", task)  # opens the processor from the folder
    masked = hc.evaluate(folders[family], task, result.mask)
    assert again.predictions["prediction"] == masked.predictions["prediction"]
    assert again.scores == masked.scores
    assert type(load_processor(tmp_path / "s")) is type(load_processor(folders[family]))


def test_many_masks_are_each_alone(folders, task):
    heads = layout(hc.load(folders["ctc"]))
    masks = [Mask.full(heads).drop([head]) for head in heads]
    together = hc.evaluate(folders["ctc"], task, masks)
    alone = [hc.evaluate(folders["ctc"], task, mask) for mask in masks]
    for one, other in zip(together, alone, strict=True):
        assert one.predictions["prediction"] == other.predictions["prediction"]


@pytest.mark.parametrize("family", FAMILIES)
def test_it_learns_and_recovers(folders, task, family, tmp_path):
    trained = hc.train(
        load_for_task(folders[family], task), task, out=tmp_path / "out",
        options=TrainOptions(learning_rate=5e-3, epochs=25, batch_size=6),
        tokenizer=load_processor(folders[family]),
    )  # fmt: skip
    losses = [point["loss"] for point in trained.curve if "loss" in point]
    assert losses[-1] < 0.6 * losses[0]
    small = hc.prune(
        tmp_path / "out", method=hc.Importance(), ratio=0.5, task=task, repair="recover"
    )
    assert small.mask.dropped


def test_sounds_without_texts_are_calibration_data(folders, task, caplog):
    """A decoder reads what the model hears; a CTC model needs no text."""
    clips = task.load("dev").files[0].parent
    for family, count in (("whisper", 4), ("ctc", 2)):
        result = hc.prune(
            folders[family], method=hc.Surgeon(), ratio=0.5, repair="recover",
            calibration=hc.Calibration(rows=clips), task=task if family == "ctc" else None,
        )  # fmt: skip
        assert len(result.mask.dropped) == count
    assert "6 of 6 held-out rows are also calibration rows" in caplog.text
    from headcount.tasks.inputs import media_files, media_rows

    model, processor = hc.load(folders["whisper"]), load_processor(folders["whisper"])
    table = clips.parent / "dev.csv"
    assert media_files(model, table) == task.load("dev").files
    assert len(media_files(model, clips)) == 18
    rows = media_rows(model, media_files(model, table), processor)
    assert all(row[0] == 2 for row in rows.labels)  # no timestamps: what it begins with is no label
    assert hc.redundancy(model, rows, "js").count == 6


def test_a_text_longer_than_its_sound_is_one_sentence(folders, task):
    rows, _ = _rows(folders["ctc"], task)
    row = rows.take([0])
    row.labels[0] = [LETTERS.index("A")] * 200
    with pytest.raises(UsageError, match="longer than its sound"):
        hc.importance(hc.load(folders["ctc"]), row)


def test_a_text_longer_than_the_decoder_is_one_sentence(folders, task):
    model = hc.load(folders["whisper"])
    rows, _ = _rows(folders["whisper"], task)
    row = rows.take([0])
    row.labels[0] = [LETTERS.index("A")] * 17
    with pytest.raises(UsageError, match=r"A text of 17 tokens is longer than .*, 16 at most"):
        hc.importance(model, row)
    row.labels[0] = [5] * 16
    hc.importance(model, row)


def test_features_of_another_model_are_one_sentence(folders, task, tmp_path):
    shutil.copytree(folders["whisper"], tmp_path / "other")
    WhisperFeatureExtractor(feature_size=10, chunk_length=1).save_pretrained(tmp_path / "other")
    with pytest.raises(UsageError, match=r"cannot take 10 x 100 numbers of sound .*another model"):
        hc.evaluate(tmp_path / "other", task)


def test_models_and_tasks_of_other_kinds_are_refused(folders, task):
    with pytest.raises(UsageError, match="reads none"):
        hc.evaluate("pocket", task)
    with pytest.raises(UsageError, match="reads none"):
        hc.evaluate(folders["ctc"], open_task("image-classification", data=_images(folders)))


def _images(folders: dict[str, Path]) -> Path:
    from tasks.media import write_images

    return write_images(folders["ctc"].parent / "images")


def test_a_ctc_model_is_seen_by_its_name():
    ctc = type("WavForCTC", (torch.nn.Module,), {})()
    assert kind_of(ctc, torch.zeros(2, 3, 9), torch.zeros(2, 5)).name == KIND
