"""Every reader of headcount: a good file of its kind, how it is damaged, and the call that reads.

What a reader accepts is used as its caller would, so that damage it lets pass is seen as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import yaml

from fuzz import damage
from fuzz.configs import read_config, write_config
from fuzz.searches import read_search, write_search
from fuzz.studies import read_leases, read_study, write_leases, write_study
from fuzz.trees import Gentle, damaged, dumped
from runs.whole import whole_record

LAYOUT = {"encoder": {"heads": [2, 3], "groups": [2, 3], "uses": [1, 1]}}
MASK = {"layout": LAYOUT, "kept": {"encoder": [[0], [0, 2]]}}


@dataclass(frozen=True)
class Reader:
    """One kind of file."""

    name: str
    share: int
    """Of every hundred inputs, about so many."""
    write: Callable[[Path, Random], Path]
    """Put a damaged file or folder under this folder; what is to be read."""
    read: Callable[[Path], Any]

    def made(self, folder: Path, rng: Random) -> Path:
        """What is to be read, in which a file may have become a pipe or the like."""
        path = self.write(folder, rng)
        damage.no_file(folder, rng)
        return path


def _file(name: str, data: Callable[[Random], bytes]) -> Callable[[Path, Random], Path]:
    def write(folder: Path, rng: Random) -> Path:
        (folder / name).write_bytes(data(rng))
        return folder / name

    return write


# --- masks, scores and layouts ---


def _read_mask(path: Path) -> None:
    from headcount.heads import Layout, Mask
    from headcount.models.numbers import read_mask

    layout = Layout.of(encoder=[2, 3])
    mask = read_mask(str(path), layout, layout)
    assert Mask.from_json(mask.to_json(), layout) == mask
    repr(mask), mask.pattern, mask.dropped


def _read_scores(path: Path) -> None:
    from headcount.base.files import read_json
    from headcount.heads import Scores

    scores = Scores.from_json(read_json(path, "file of scores"))
    repr(scores), scores.by_layer()


SCORES = {"layout": LAYOUT, "scores": {"encoder": [[0.5, 1.0], [0.1, 2, 3.5]]}}
PATTERNS = ("11", "2x3", "encoder:12", "1,2", "encoder: 2,3", json.dumps(MASK))


def _pattern(rng: Random) -> bytes:
    text = rng.choice(PATTERNS)
    if isinstance(rng, Gentle):
        return text.encode()
    odd = ("9" * 12, "x", ":", "²", "٣", " ", ",", "-1", "{", "encoder:", "\x1b", "9" * 5000)
    at = rng.randrange(len(text) + 1)
    return (text[:at] + rng.choice(odd) + text[at + rng.randrange(2) :]).encode()


def _read_pattern(path: Path) -> None:
    from headcount.base.files import read_text
    from headcount.heads import Layout, Mask

    repr(Mask.parse(read_text(path, "pattern"), Layout.of(encoder=[2, 3])))


# --- studies ---


EVALUATION = {
    "task": "mrpc", "split": "dev", "n": 10, "seconds": 0.5, "seed": 0, "signature": None,
    "scores": {"f1": {"metric": "f1", "value": 0.5, "low": 0.4, "high": 0.6}},
}  # fmt: skip


@cache
def _record() -> dict[str, Any]:
    from headcount.pruning.importance import Importance
    from headcount.runs.kinds.prune import Prune
    from headcount.runs.prune_result import PruneResult
    from headcount.runs.record import Record
    from headcount.runs.run import Run

    score = {"score": 0.5, "low": 0.4, "high": 0.6, "n": 10, "task": "mrpc"}
    result = {
        "method": "importance", "ratio": 0.5, "seed": 0, "learned": None, "mask": MASK,
        "heads": {"before": 5, "after": 3, "kept": "12"},
        "budget": {"steps": 3, "epochs": 1.0, "examples": 48, "examples_measured": 16},
        "scores": {
            "before": score, "after": score,
            "difference": {"metric": "f1", "value": -0.1, "low": -0.2, "high": 0.1},
        },
    }  # fmt: skip
    run = Run("prune", "x", task="mrpc", options=Prune(method=Importance(), ratio=0.5))
    about = {"task": "mrpc", "versions": {"torch": "2"}, "device": "cpu", "model": "x"}
    whole = PruneResult.from_json(whole_record("prune", result))
    return Record(run=run, identity=about, result=whole, seconds=1.5).to_json()


def _read_record(path: Path) -> None:
    from headcount.runs.record import load_record
    from headcount.studies.points import Point, require_cut

    found = load_record(path)
    require_cut(found, path)
    repr(found), found.to_json(), found._repr_html_(), found.run.key
    point = Point.of(found)
    ratio = 0 if point.ratio == "free" else point.ratio or 0
    point.to_json(), f"{point.score:.3f} {ratio:g} {point.kept:d} {point.seconds:.1f}"


FULL = {"scores": EVALUATION, "predictions": [0, 1, 1, 0], "labels": [0, 1, 0, 0]}
QUESTION = "12ab"


def _full(rng: Random) -> bytes:
    """What it says is damaged, and its sum is right nevertheless; or anything else is."""
    from headcount.runs.identity import seal

    if rng.random() < 0.5:
        with suppress(ValueError, TypeError):  # what is no object has no sum
            return json.dumps(seal(damaged(FULL, rng), QUESTION)).encode()
    return damage.json_file(seal(FULL, QUESTION), rng)


def _read_full(path: Path) -> None:
    from headcount.studies.outcome import kept

    found = kept(path.parent, QUESTION)
    if not path.is_file():
        return  # it is made again
    assert found is not None
    assert found.outcome is not None
    repr(found), found.to_json(), len(found.outcome.labels)


CURVE = [
    {"step": 4, "epoch": 0.5, "loss": 0.7, "grad_norm": 1.5, "learning_rate": 1e-4},
    {"step": 8, "epoch": 1.0, "loss": 0.6},
    {"step": 8, "epoch": 1.0, "accuracy": None},
]
PENDING = {"since": 8, "sums": [0.25]}


def _write_curve(folder: Path, rng: Random) -> Path:
    (folder / "checkpoint-9").mkdir()
    first = rng.random() < 0.7
    lines = damage.json_lines(CURVE, rng if first else Gentle(0))
    (folder / "curve.jsonl").write_bytes(lines)
    pending = damage.json_file(PENDING, Gentle(0) if first else rng)
    (folder / "checkpoint-9" / "loss.json").write_bytes(pending)
    return folder / "curve.jsonl"


def _read_curve(path: Path) -> None:
    import torch

    from headcount.training.curve import LearningCurve

    curve = LearningCurve(path)
    args = SimpleNamespace(output_dir=path.parent, device="cpu", world_size=1, process_index=0)
    curve.on_train_begin(args, SimpleNamespace(global_step=9, is_world_process_zero=True), None)
    curve.add(torch.ones(()))
    [float(value) for point in curve.points for value in point.values() if value is not None]


SETTINGS = {"model": "Bert 12ab", "task": "mrpc", "data": "12 rows", "epochs": 3.0, "freeze": []}


def _read_settings(path: Path) -> None:
    from headcount.training.checkpoints import require_same_settings

    require_same_settings(path.parent, SETTINGS)


def _read_evaluation(path: Path) -> None:
    from headcount.base.files import read_json
    from headcount.training.evaluation import Evaluation

    found = Evaluation.from_json(read_json(path, "result"))
    repr(found), found.to_json()


# --- arrays ---


@cache
def _redundancy() -> dict[str, np.ndarray]:
    about = {"format": "headcount redundancy", "version": 1, "layout": LAYOUT, "count": 4,
             "provenance": {"model": "x", "inputs": "random"},
             "matrices": [["encoder", "js"], ["encoder", "cos"]]}  # fmt: skip
    arrays: dict[str, np.ndarray] = {"about": np.array(json.dumps(about))}
    values = np.random.default_rng(0).random((5, 5)) * (1 - np.eye(5))
    for name in ("js", "cos"):
        arrays[f"encoder/{name}/values"] = values + values.T
        arrays[f"encoder/{name}/stderr"] = values / 10
    return arrays


def _read_redundancy(path: Path) -> None:
    from headcount.likeness.result import load_redundancy

    found = load_redundancy(path)
    repr(found), found.to_json(), found.matrices(found.distances)


@cache
def _roles() -> dict[str, Any]:
    from headcount.behaviour.words import ROLES

    numbers = {name: [0.5, None, 0.25, 0.5, 0.5] for name in ("values", "stderr", "low", "high")}
    about = {"unit": "share", "what": "attention", "chance": [0.1] * 5}
    example = {"head": 0, "tokens": ["a", "b"], "decile": 1, "strength": 0.5, "query": 1,
               "weights": [[0, 0.5]], "most": [[0, 0.5], [1, 0.5]]}  # fmt: skip
    return {"format": "headcount roles", "version": 1, "layout": LAYOUT, "count": 9,
            "inputs": "texts", "quantities": dict.fromkeys(ROLES, numbers | about),
            "roles": [None] * 5, "chance": {}, "examples": [example],
            "provenance": {
                "separators": {"encoder": "special"}, "tokens": 9, "unknowns": 3,
            }}  # fmt: skip


def _read_roles(path: Path) -> None:
    from headcount.behaviour.result import load_roles
    from headcount.views.tables.roles import roles_table

    found = load_roles(path)
    repr(found), found.to_json(), found._repr_html_(), roles_table(found)


@cache
def _unfinished() -> dict[str, np.ndarray]:
    about = {"format": "headcount redundancy, unfinished", "version": 1, "digest": "12ab",
             "settings": {"seed": 0, "model": "x"}, "count": 4,
             "matrices": [["encoder", "js"]]}  # fmt: skip
    return {
        "about": np.array(json.dumps(about)),
        "encoder/js/mean": np.ones((5, 5)),
        "encoder/js/squares": np.ones((5, 5)),
    }


def _read_unfinished(path: Path) -> None:
    from headcount.likeness.running import load_state

    running, _ = load_state(path, {"seed": 0, "model": "x"})
    running.largest_error(), running.measured()


@cache
def _gates() -> dict[str, np.ndarray]:
    from headcount.heads import Layout
    from headcount.learned.trace import Trace

    trace = Trace(Layout.from_json(LAYOUT), about={"method": "subset", "route": {"kept": 3}})
    state = np.array([True, True, False, True, False])
    for step in range(4):
        trace.note(step, np.linspace(0, 1, 5) + step, state ^ (step == 1))
        trace.count(state, state ^ (step == 1))
    trace.scores = [{"step": 1, "loss": 0.5}, {"step": 2, "score": 0.7, "n": 10, "open": 3}]
    return trace.to_arrays()


def _read_gates(path: Path) -> None:
    from headcount.learned.trace import load_trace

    trace = load_trace(path)
    trace.left(), trace.summary()
    [float(point.get("loss", 0.0)) + point["step"] for point in trace.scores]


# --- weights ---


@cache
def _scorer() -> tuple[bytes, dict[str, Any]]:
    import tempfile

    from headcount.pruning.scorer import Scorer, save_scorer

    with tempfile.TemporaryDirectory() as folder:
        save_scorer(Scorer(2), Path(folder) / "a.safetensors", {"task": "mrpc"})
        about = json.loads((Path(folder) / "a.json").read_text(encoding="utf-8"))
        return (Path(folder) / "a.safetensors").read_bytes(), about


def _write_scorer(folder: Path, rng: Random) -> Path:
    weights, about = _scorer()
    first = rng.random() < 0.5
    path = folder / "a.safetensors"
    path.write_bytes(damage.safetensors(weights, rng) if first else weights)
    said = json.dumps(about).encode() if first else damage.json_file(about, rng)
    path.with_suffix(".json").write_bytes(said)
    return path


def _read_scorer(path: Path) -> None:
    import torch

    from headcount.pruning.scorer import load_scorer

    load_scorer(path)(torch.ones(1, 3, 3), torch.ones(1, 3, 3))


@cache
def _learned() -> tuple[Any, dict[str, bytes]]:
    """A tiny model, and the files a finished run of gates leaves for it."""
    import tempfile

    from transformers import BertConfig, BertModel

    from headcount.heads import Layout, Mask
    from headcount.learned.run import LearnedGates
    from headcount.learned.trace import Trace

    model = BertModel(_tiny(BertConfig)).eval()
    layout = Layout.of(encoder=[2, 2])
    made = LearnedGates(model=model, mask=Mask.full(layout), trace=Trace(layout), steps=3, rows=4,
                   examples=5, seconds=1.0, route={"kept": 4})  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        made.save(Path(folder))
        return model, {each.name: each.read_bytes() for each in Path(folder).iterdir()}


def _tiny(kind: Any) -> Any:
    return kind(vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
                intermediate_size=8, max_position_embeddings=16)  # fmt: skip


def _write_learned(folder: Path, rng: Random) -> Path:
    files = dict(_learned()[1])
    name = rng.choice(["result.json", "mask.json", "weights.safetensors"])
    kind = damage.safetensors if name.endswith("s") else _json_again
    files[name] = kind(files[name], rng)
    for each, data in files.items():
        (folder / each).write_bytes(data)
    return folder


def _json_again(data: bytes, rng: Random) -> bytes:
    return damage.json_file(json.loads(data), rng)


def _read_learned(path: Path) -> None:
    from headcount.learned.run import finished

    assert finished(_learned()[0], path).to_json()


# --- words ---


@cache
def tokenizer_files() -> dict[str, bytes]:
    import tempfile

    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "small", "$"]
    built = Tokenizer(models.WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    built.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    built.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )  # fmt: skip
    made = PreTrainedTokenizerFast(
        tokenizer_object=built, model_max_length=32, pad_token="[PAD]", unk_token="[UNK]",
        cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        made.save_pretrained(folder)
        return {each.name: each.read_bytes() for each in Path(folder).iterdir()}


def _write_tokenizer(folder: Path, rng: Random) -> Path:
    files = dict(tokenizer_files())
    name = rng.choice(["tokenizer.json", "tokenizer.json", "tokenizer_config.json"])
    files[name] = damage.json_file(json.loads(files[name]), rng)
    for each, data in files.items():
        (folder / each).write_bytes(data)
    return folder


def _read_tokenizer(path: Path) -> None:
    from headcount.tasks.encoding import encode_texts
    from headcount.tasks.loading import load_tokenizer

    words = load_tokenizer(path)
    rows = encode_texts(["the small cat", "cats", ""], words, max_length=8)
    next(iter(rows.batches()))
    encode_texts([("the cat", "a cat")], words, max_length=8)


# --- rows ---

ROWS = [["text", "other", "label"]] + [
    [f"the small cat {i}", f"cats, {i}", str(i % 2)] for i in range(6)
]


@cache
def _parquet(which: int) -> bytes:
    import io
    from datetime import datetime
    from decimal import Decimal

    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = [row[0] for row in ROWS[1:]]
    labels: tuple[Any, ...] = (
        [0, 1, 0, 1, 0, None],
        pa.array([b"\xff", b"1"] * 3),
        [[1], [], None, [2, 3], [4], [5]],
        [{"a": 1}] * 6,
        [Decimal("1.5")] * 6,
        pa.array([2**62, -(2**62)] * 3, pa.timestamp("us")),
        [datetime(2020, 1, 1)] * 6,
        pa.array(["a", "b"] * 3).dictionary_encode(),
        pa.nulls(6),
        pa.array([1.5, float("nan")] * 3, pa.float16()),
        pa.array([2**62] * 6, pa.duration("s")),
        pa.array([2**31 - 1] * 6, pa.date32()),
    )
    table = pa.table({"text": texts, "other": texts, "label": labels[which % len(labels)]})
    file = io.BytesIO()
    ways = {"compression": ("none", "snappy", "zstd", "gzip")[which % 4], "row_group_size": 4}
    pq.write_table(table, file, use_dictionary=bool(which % 2), **ways)
    return file.getvalue()


def _write_table(folder: Path, rng: Random) -> Path:
    suffix = rng.choice((".csv", ".tsv", ".jsonl", ".json", ".parquet", ".parquet"))
    path = folder / f"dev{suffix}"
    if suffix == ".parquet":
        data = _parquet(rng.randrange(24))
        path.write_bytes(data if rng.random() < 0.05 else damage.in_bytes(data, rng))
    elif suffix in (".csv", ".tsv"):
        path.write_bytes(damage.delimited(ROWS, "," if suffix == ".csv" else "\t", rng))
    else:
        rows = [dict(zip(ROWS[0], row, strict=True)) for row in ROWS[1:]]
        path.write_bytes(damage.json_lines(rows, rng))
    return path


def _write_tagged(folder: Path, rng: Random) -> Path:
    words = [["EU", "B-org"], ["says", "O"], ["", ""], ["no", "O"]]
    if rng.random() < 0.5:
        (folder / "dev.conll").write_bytes(damage.delimited(words, "\t", rng))
        return folder / "dev.conll"
    rows = [{"tokens": ["EU", "says"], "tags": ["B-org", "O"]}, {"tokens": ["no"], "tags": ["O"]}]
    (folder / "dev.jsonl").write_bytes(damage.json_lines(rows, rng))
    return folder / "dev.jsonl"


def _read_tagged(path: Path) -> None:
    from headcount.tasks import open_task

    task = open_task("token-classification", data=path)
    for split in task.splits:
        words, tags = task.load(split).texts
        pairs = zip(words, tags, strict=True)
        assert all(len(str(a).split(" ")) == len(str(b).split(" ")) for a, b in pairs)


def _write_retrieval(folder: Path, rng: Random) -> Path:
    corpus = [{"_id": f"d{n}", "title": "", "text": f"text {n}"} for n in range(4)]
    queries = [{"_id": f"q{n}", "text": f"text {n}"} for n in range(3)]
    judged = [["query-id", "corpus-id", "score"], *([f"q{n}", f"d{n}", "1"] for n in range(3))]
    which = rng.randrange(3)
    (folder / "qrels").mkdir()
    for number, (name, rows) in enumerate((("corpus", corpus), ("queries", queries))):
        plain = "".join(json.dumps(row) + "\n" for row in rows).encode()
        data = damage.json_lines(rows, rng) if number == which else plain
        (folder / f"{name}.jsonl").write_bytes(data)
    plain = "\n".join("\t".join(row) for row in judged).encode()
    data = damage.delimited(judged, "\t", rng) if which == 2 else plain
    (folder / "qrels" / "dev.tsv").write_bytes(data)
    return folder


def _read_retrieval(path: Path) -> None:
    from headcount.tasks import open_task
    from headcount.tasks.kinds.retrieval import ranked_scores

    task = open_task("retrieval", data=path)
    for split in task.splits:
        rows = task.load(split)
        for text in rows.texts[1]:
            grades = {int(at): grade for at, grade in json.loads(str(text)).items()}
            assert all(
                0 <= score <= 1 for score in ranked_scores(np.ones(len(rows.corpus)), grades)
            )


def _write_choices(folder: Path, rng: Random) -> Path:
    rows = [
        {"goal": f"do {n}", "sol1": "a", "sol2": f"b {n}", "choices": ["a", f"b {n}", "c"][: 2 + n]}
        for n in range(4)
    ]
    answers = "".join(f"{n % 2}\n" for n in range(4)).encode()
    which = rng.randrange(2)
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    (folder / "valid.jsonl").write_bytes(damage.json_lines(rows, rng) if which else lines)
    damaged_answers = answers if which else damage.in_bytes(answers, rng)
    (folder / "valid-labels.lst").write_bytes(damaged_answers)
    return folder


def _read_choices(path: Path) -> None:
    from transformers import ByT5Tokenizer

    from headcount.tasks import open_task
    from headcount.tasks.encoding import encode

    letters = ByT5Tokenizer()
    for columns in (["goal", "sol1", "sol2"], ["goal", "choices"]):
        task = open_task("multiple-choice", data=path, columns=columns, template="Q: {}")
        for split in task.splits:
            rows = task.load(split)
            for text, label in zip(rows.texts[1], rows.labels, strict=True):  # pyright: ignore[reportArgumentType]
                assert 0 <= label < len(json.loads(str(text)))
            encode(task, rows, letters, max_length=2**20)


def _write_conversations(folder: Path, rng: Random) -> Path:
    rows = [
        {"messages": [{"role": "user", "content": f"a {n}"}, {"role": "assistant", "content": "b"}]}
        for n in range(5)
    ]
    (folder / "chat.jsonl").write_bytes(damage.json_lines(rows, rng))
    return folder / "chat.jsonl"


def _read_conversations(path: Path) -> None:
    from transformers import ByT5Tokenizer

    from headcount.tasks import open_task
    from headcount.tasks.conversations import calibration_texts
    from headcount.tasks.encoding import encode, encode_texts

    letters = ByT5Tokenizer()
    letters.chat_template = "{% for m in messages %}{{ m['role'] }}{{ m['content'] }}{% endfor %}"
    for window in (None, 8):
        task = open_task("causal-lm", train=path, dev=path, window=window)
        encode(task, task.load(), letters)
    encode_texts(calibration_texts(path), letters)


def _write_modules(folder: Path, rng: Random) -> Path:
    from safetensors.numpy import save

    names = ("Transformer", "Pooling", "Dense", "Normalize")
    paths = ("", "1_Pooling", "2_Dense", "3_Normalize")
    listed = [{"path": path, "type": f"sentence_transformers.models.{name}"}
              for path, name in zip(paths, names, strict=True)]  # fmt: skip
    weights = save({"linear.weight": np.ones((2, 4), np.float32)})
    files: dict[str, Any] = {
        "modules.json": listed,
        "1_Pooling/config.json": {"word_embedding_dimension": 4, "pooling_mode_mean_tokens": True},
        "2_Dense/config.json": {"activation_function": "torch.nn.modules.activation.Tanh"},
    }
    which = rng.choice([*files, "weights"])
    for name, tree in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        data = damage.json_file(tree, rng) if name == which else json.dumps(tree).encode()
        (folder / name).write_bytes(data)
    data = damage.safetensors(weights, rng) if which == "weights" else weights
    (folder / "2_Dense" / "model.safetensors").write_bytes(data)
    return folder


def _read_modules(path: Path) -> None:
    import torch

    from headcount.models.sentences import read_modules

    read_modules(path / "modules.json").embed(torch.ones(2, 3, 4), None)


def _read_table(path: Path) -> None:
    from headcount.tasks import open_task

    for name in ("classification", "regression"):
        task = open_task(name, data=path, columns=("text", "other"), label="label")
        task.load("dev")


def _write_glue(folder: Path, rng: Random) -> Path:
    rows = [["id", str(i % 2), "", f"the small cat {i}"] for i in range(6)]
    (folder / "dev.tsv").write_bytes(damage.delimited(rows, "\t", rng))
    names = ["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"]
    pairs = [names] + [[str(i % 2), str(i), f"{i}0", "the cat", "a cat"] for i in range(6)]
    (folder / "msr_paraphrase_train.txt").write_bytes(damage.delimited(pairs, "\t", rng))
    ids = damage.delimited([["1", "10"], ["3", "30"]], "\t", rng)
    (folder / "dev_ids.tsv").write_bytes(ids)
    return folder


def _read_glue(path: Path) -> None:
    from headcount.base.errors import HeadcountError
    from headcount.tasks import open_task

    with suppress(HeadcountError):  # and the other file has its turn
        open_task("cola", data=path).load("dev")
    (path / "dev.tsv").rename(path / "other.tsv")
    open_task("mrpc", data=path).load("dev")


def _write_parallel(folder: Path, rng: Random) -> Path:
    for number, ending in enumerate(("en", "de")):
        for split in ("train", "dev"):
            lines = "".join(f"the small cat {ending} é {i}\n" for i in range(5)).encode()
            hit = rng.random() < 0.4 or number + 1 == rng.randrange(3)
            data = damage.in_bytes(lines, rng) if hit else lines
            (folder / f"{split}.{ending}").write_bytes(data)
    return folder


def _read_parallel(path: Path) -> None:
    from headcount.tasks import open_task

    task = open_task("translation", data=path, languages=("en", "de"))
    for split in task.splits:
        task.load(split)


def _write_squad(folder: Path, rng: Random) -> Path:
    context = "In 1867 the Bell rang twice. é 日本"
    answers = [{"text": "Bell", "answer_start": 12}, {"text": "日本", "answer_start": 31}]
    questions = [
        {"id": "q1", "question": "What?", "answers": answers, "is_impossible": False},
        {"id": "q2", "question": "Who?", "answers": [], "is_impossible": True},
    ]
    paragraphs = [{"context": context, "qas": questions}, {"context": "x", "qas": []}]
    data = {"version": "v2.0", "data": [{"title": "Bells", "paragraphs": paragraphs}]}
    (folder / "dev.json").write_bytes(damage.json_file(data, rng))
    return folder / "dev.json"


def _read_squad(path: Path) -> None:
    from headcount.tasks import open_task
    from headcount.tasks.encoding import encode
    from headcount.tasks.loading import load_tokenizer
    from headcount.tasks.squad import read_answers

    task = open_task("question-answering", data=path)
    for split in task.splits:
        rows = task.load(split)
        for _, context, answers in zip(*rows.texts, strict=True):
            for text, start in read_answers(str(answers))[0]:
                assert str(context)[start:].startswith(text)
        assert encode(task, rows, load_tokenizer("pocket"), max_length=16).lengths.max() <= 16


def _write_pairs(folder: Path, rng: Random) -> Path:
    rows = [["a cat", "b"], ["the dog", "cats é 日本"], ["x, y", "z"]]
    if rng.random() < 0.5:
        (folder / "dev.csv").write_bytes(damage.delimited([["long", "short"], *rows], ",", rng))
    else:
        lines = [{"long": long, "short": short} for long, short in rows]
        (folder / "dev.jsonl").write_bytes(damage.json_lines(lines, rng))
    return folder


def _read_pairs(path: Path) -> None:
    from headcount.tasks import open_task

    task = open_task("text-to-text", data=path, columns=("long", "short"))
    for split in task.splits:
        texts = task.load(split).texts
        assert all(str(text).strip() for column in texts for text in column)


def _write_text(folder: Path, rng: Random) -> Path:
    data = "the small cat\n\ncats é 日本\nsmall cats\n".encode()
    (folder / "dev.txt").write_bytes(damage.in_bytes(data, rng))
    return folder / "dev.txt"


def _read_text(path: Path) -> None:
    from headcount.tasks import open_task

    open_task("masked-lm", data=path).load("dev")


# --- options ---

OPTIONS: dict[str, Any] = {
    "prune": {"model": "pocket", "ratio": 0.5, "method": "random", "seed": 3, "out": "small",
              "finetune": True, "epochs": 1.5, "columns": ["a", "b"], "task": "mrpc"},
    "evaluate": {"model": "pocket", "task": "sst2", "data": "folder", "limit": 8},
    "bench": {"model": "pocket", "batch": 8, "length": 32},
}  # fmt: skip


def _toml(tree: Any) -> str:
    """A damaged tree as TOML, as far as it goes."""
    lines = []
    for section, options in tree.items() if isinstance(tree, dict) else []:
        lines.append(f"[{section}]")
        for key, value in options.items() if isinstance(options, dict) else [("x", options)]:
            lines.append(f"{key} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def _options(rng: Random) -> bytes:
    def inside(tree: Any, rng: Random) -> bytes:
        text = _toml(damaged(tree, rng))
        text = text.replace('"@deep@"', "[" * 3000 + "]" * 3000)
        return text.replace('"@long@"', "9" * 5000).encode("utf-8", "surrogatepass")

    return damage.either(OPTIONS, rng, inside, lambda tree: _toml(tree).encode())


def _read_options(path: Path) -> None:
    from cyclopts import CycloptsError

    from headcount.cli.main import CommandLine, build

    for name in ("prune", "evaluate", "bench"):
        line = CommandLine.read([name, "--config", str(path)])
        try:
            build(line).parse_args(line.tokens)
        except CycloptsError as error:
            str(error)  # the command line's own refusal


# --- models with heads removed ---


@cache
def _pruned() -> dict[str, bytes]:
    import tempfile

    import torch
    from transformers import BertConfig, BertModel

    from headcount.heads import Mask
    from headcount.models.find import layout
    from headcount.models.remove import remove

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertModel(_tiny(BertConfig)).eval()
    small = remove(model, Mask.parse("10", layout(model)))
    with tempfile.TemporaryDirectory() as folder:
        small.save_pretrained(folder)
        return {each.name: each.read_bytes() for each in Path(folder).iterdir()}


def _write_pruned(folder: Path, rng: Random) -> Path:
    files = dict(_pruned())
    config = json.loads(files["config.json"])
    if rng.random() < 0.8:
        del config["headcount"]["check"]  # or the sum over the rest would refuse all of it
    config["headcount"] = damaged(config["headcount"], rng)
    files["config.json"] = dumped(config, rng).encode("utf-8", "surrogatepass")
    for each, data in files.items():
        (folder / each).write_bytes(data)
    return folder


def _read_pruned(path: Path) -> None:
    import torch

    from headcount.models.load import load

    load(path)(input_ids=torch.ones(1, 3, dtype=torch.long))


RECORD = whole_record("prune", {
    "method": "surgeon", "seed": 0, "heads": {"before": 4, "after": 2, "kept": "11"},
    "mask": MASK, "repair": [{"name": "recover", "rows": "mrpc", "steps": 0}],
    "trained": {"steps": 10, "rows": 96, "evaluation": None}, "rows_text": "Calibrated on 96 rows.",
    "notes": ["This is not better than random."], "command": "headcount prune /a/b --ratio 0.5",
    "scores": {
        "task": "sst2", "split": "dev", "n": 10, "metric": "accuracy", "lost": "-0.1 [-0.2, 0.0]",
        "dataset": {"id": "nyu-mll/glue", "task": "sst2"},
        "before": {"score": 0.9, "low": 0.8, "high": 1.0},
        "after": {"score": 0.8, "low": 0.7, "high": None},
        "random": {"draws": 3, "worst": 0.3, "mean": 0.4, "best": 0.5},
    },
})  # fmt: skip
"""What `prune` leaves beside a model, as far as cards show it."""


@cache
def _carded() -> Any:
    from transformers import BertConfig, BertForSequenceClassification

    from headcount.heads import Mask
    from headcount.models.find import layout
    from headcount.models.remove import remove

    model = BertForSequenceClassification(_tiny(BertConfig)).eval()
    return remove(model, Mask.parse("11", layout(model)))


def _read_card(path: Path) -> None:
    from headcount.base.files import read_json
    from headcount.models.card import card
    from headcount.runs.card import card_results, write_results
    from headcount.runs.prune_result import PruneResult
    from headcount.runs.record import read_result

    record = read_json(path, "record of a pruned model")
    if isinstance(record, dict):
        result = read_result(PruneResult, record)
        yaml.safe_load(card(_carded(), results=card_results(result)).split("---")[1])
        write_results(path.parent, result)


# --- the page ---


@cache
def _page_files() -> dict[str, Any]:
    """What a page is made of, as JSON or as arrays."""
    cut = _record() | {"model": "x", "task": "mrpc", "seed": 0, "method": "importance"}
    tried = [{"method": "importance", "kept": 3, "seed": 0, "rows": 10, "score": 0.4,
              "difference": {"value": -0.1, "low": -0.2, "high": 0.0}, "probability": 0.9,
              "accepted": True, "id": cut["id"]}]  # fmt: skip
    rows = {name: {"split": f"dev:{name}:0.5:0", "n": 10} for name in ("selection", "held_out")}
    searched = {
        "model": "x", "task": "mrpc", "metric": "f1", "higher_is_better": True, "heads": 5,
        "kept": 3, "bound": "2 %", "by": "loss", "sentence": "x needs 3 of its 5 heads.",
        "full": 0.5, "score": 0.4, "difference": {"value": -0.1, "low": -0.2, "high": 0.0},
        "speedup": {"value": 1.2, "low": 1.1, "high": 1.3}, "tried": tried, "rows": rows,
        "sizes": [row | {"seeds": [0], "rows": 9, "probability": 0.9} for row in tried],
        "timing": {"batch": 8, "length": 16, "milliseconds": {"before": 2.0, "after": 1.6},
                   "shapes": [{"batch": 8, "reads": "16 tokens", "bound": 1.3,
                               "speedup": {"value": 1.2, "low": 1.1, "high": 1.3}}]},
        "selection": EVALUATION | {"score": 0.5}, "least": 0.49, "within_bound": True,
        "probability": 0.9,
        "parameters": {"before": 100, "after": 90}, "command": "headcount search x --out s",
    }  # fmt: skip
    return {"s/search.json": searched, f"s/runs/{cut['id']}/record.json": cut,
            "s/model/record.json": cut, "s/model/mask.json": MASK, "s/full.json": FULL,
            "roles.json": _roles(), "near.npz": _redundancy(),
            "gated/gates.npz": _gates()}  # fmt: skip


def _write_page(folder: Path, rng: Random) -> Path:
    files = _page_files()
    hit = rng.choice(list(files))
    for name, data in files.items():
        own = rng if name == hit else Gentle(0)
        kind = damage.npz if name.endswith("z") else damage.json_file
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(kind(data, own))
    return folder


def _read_page(path: Path) -> None:
    from headcount.base.errors import HeadcountError
    from headcount.views.page.report import report

    found = report(path, out=path / "page.html")
    if found.skipped:
        raise HeadcountError(found.skipped[0][1])


def _write_search(folder: Path, rng: Random) -> Path:
    (folder / "s").mkdir()
    return write_search(folder / "s", rng, _record(), FULL, _pruned())


# --- images ---


@cache
def _image(suffix: str) -> bytes:
    import io

    from PIL import Image

    pixels = (np.arange(12 * 12 * 3) % 251).astype(np.uint8).reshape(12, 12, 3)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, {".jpg": "jpeg"}.get(suffix, suffix[1:]))
    return file.getvalue()


def _write_image(folder: Path, rng: Random) -> Path:
    suffix = rng.choice((".png", ".png", ".jpg", ".bmp", ".gif", ".webp", ".tiff", ".ppm"))
    path = folder / f"image{suffix}"
    path.write_bytes(damage.in_bytes(_image(suffix), rng))
    return path


def _read_image(path: Path) -> None:
    from transformers import ViTImageProcessorPil

    from headcount.tasks.images import encode_images

    rows = encode_images([path], ViTImageProcessorPil(size={"height": 16, "width": 16}))
    assert next(iter(rows.batches()))[1]["pixel_values"].shape == (1, 3, 16, 16)


def _write_processor(folder: Path, rng: Random) -> Path:
    settings = {
        "image_processor_type": "ViTImageProcessor", "do_resize": True, "do_normalize": True,
        "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "resample": 2,
        "rescale_factor": 0.004, "size": {"height": 16, "width": 16},
    }  # fmt: skip
    name = "right"
    if not isinstance(rng, Gentle):
        settings["size"] = {"height": rng.choice((16, 16, 20)), "width": 16}
        name = rng.choice(("right", "right", "no"))
    table = [["image", "class"], ["image.png", "left"], ["image.png", name]]
    hit = rng.random() < 0.6
    path = folder / "preprocessor_config.json"
    path.write_bytes(damage.json_file(settings, rng if hit else Gentle(0)))
    (folder / "rows.csv").write_bytes(damage.delimited(table, ",", Gentle(0) if hit else rng))
    (folder / "image.png").write_bytes(_image(".png"))
    return folder


@cache
def _sees() -> Any:
    """A model of images of 16 x 16, with the classes left and right."""
    import tempfile

    from headcount.models.load import load
    from tasks.media import write_vit

    with tempfile.TemporaryDirectory() as folder:
        return load(write_vit(Path(folder), labels=("left", "right")))


def _read_processor(path: Path) -> None:
    from headcount.models.processors import open_processor
    from headcount.tasks import open_task
    from headcount.tasks.rows import labelled_rows

    table = path / "rows.csv"
    task = open_task("image-classification", train=table, dev=table, columns="image", label="class")
    rows = labelled_rows(_sees(), task, open_processor(path, frozenset({"pixel_values"})))
    assert next(iter(rows.batches()))[1]["pixel_values"].shape[1:] == (3, 16, 16)


def _write_sound(folder: Path, rng: Random) -> Path:
    from tasks.sounds import tone, wav

    written = rng.choice(({"bits": 8}, {"bits": 16}, {"bits": 24}, {"bits": 32, "floats": True}))
    sound = tone("low")
    if not isinstance(rng, Gentle) and rng.random() < 0.5:
        sound = rng.choice((sound, sound[:0], sound[:90], 0 * sound, sound[:, None][:, [0] * 3]))
        written = written | {"rate": rng.choice((0, 7, 999, 1000, 8000, 44_100, 10**7))}
    path = folder / "sound.wav"
    path.write_bytes(damage.in_bytes(wav(sound, **written), rng))
    return path


def _read_sound(path: Path) -> None:
    from headcount.tasks.audio import read_sound

    sound = read_sound(path, 16000)
    assert sound.ndim == 1
    assert np.isfinite(sound).all()


def _write_speech(folder: Path, rng: Random) -> Path:
    from tasks.sounds import tone, wav

    _, files = _hears()
    hit, text = rng.random() < 0.6, "high"
    if not isinstance(rng, Gentle):
        text = rng.choice(("high", "high", "high " * 20, "бг"))
    for name, data in files.items():
        whole = name != "preprocessor_config.json" or hit
        (folder / name).write_bytes(data if whole else damage.json_file(json.loads(data), rng))
    (folder / "a.wav").write_bytes(wav(tone("low")))
    rows = [["audio", "text"], ["a.wav", "low"], ["a.wav", text]]
    (folder / "speech.csv").write_bytes(damage.delimited(rows, ",", rng if hit else Gentle(0)))
    return folder


@cache
def _hears() -> tuple[Any, dict[str, bytes]]:
    """A model of sounds, and the files of its processor."""
    import tempfile

    from headcount.models.load import load
    from tasks.sounds import write_whisper

    with tempfile.TemporaryDirectory() as folder:
        model = load(write_whisper(Path(folder)))
        names = (
            "preprocessor_config.json",
            "tokenizer.json",
            "tokenizer_config.json",
            "config.json",
        )
        return model, {name: (Path(folder) / name).read_bytes() for name in names}


def _read_speech(path: Path) -> None:
    from headcount.models.batches import batches_for
    from headcount.models.processors import open_processor
    from headcount.tasks import open_task
    from headcount.tasks.rows import labelled_rows

    table, (model, _) = path / "speech.csv", _hears()
    task = open_task("speech-recognition", train=table, dev=table)
    rows = labelled_rows(model, task, open_processor(path, frozenset({"input_features"})))
    assert all(batch.labels is not None for batch in batches_for(model, rows))


READERS = (
    Reader("image", 4, _write_image, _read_image),
    Reader("sound", 4, _write_sound, _read_sound),
    Reader("speech", 4, _write_speech, _read_speech),
    Reader("image processor", 4, _write_processor, _read_processor),
    Reader("mask", 12, _file("mask.json", lambda rng: damage.json_file(MASK, rng)), _read_mask),
    Reader("scores", 6, _file("a.json", lambda rng: damage.json_file(SCORES, rng)), _read_scores),
    Reader("pattern", 6, _file("a.txt", _pattern), _read_pattern),
    Reader(
        "record",
        10,
        _file("record.json", lambda rng: damage.json_file(_record(), rng)),
        _read_record,
    ),
    Reader("full", 4, _file("full.json", _full), _read_full),
    Reader(
        "settings",
        5,
        _file("settings.json", lambda rng: damage.json_file(SETTINGS, rng)),
        _read_settings,
    ),
    Reader(
        "evaluation",
        5,
        _file("result.json", lambda rng: damage.json_file(EVALUATION, rng)),
        _read_evaluation,
    ),
    Reader("curve", 4, _write_curve, _read_curve),
    Reader("card", 4, _file("record.json", lambda rng: damage.json_file(RECORD, rng)), _read_card),
    Reader("gates", 9, _file("gates.npz", lambda rng: damage.npz(_gates(), rng)), _read_gates),
    Reader(
        "redundancy",
        9,
        _file("js.npz", lambda rng: damage.npz(_redundancy(), rng)),
        _read_redundancy,
    ),
    Reader(
        "roles", 4, _file("roles.json", lambda rng: damage.json_file(_roles(), rng)), _read_roles
    ),
    Reader(
        "unfinished",
        5,
        _file("js.npz.part", lambda rng: damage.npz(_unfinished(), rng)),
        _read_unfinished,
    ),
    Reader("scorer", 5, _write_scorer, _read_scorer),
    Reader("learned", 4, _write_learned, _read_learned),
    Reader("tokenizer", 4, _write_tokenizer, _read_tokenizer),
    Reader("table", 8, _write_table, _read_table),
    Reader("tagged", 3, _write_tagged, _read_tagged),
    Reader("retrieval", 3, _write_retrieval, _read_retrieval),
    Reader("choices", 3, _write_choices, _read_choices),
    Reader("conversations", 3, _write_conversations, _read_conversations),
    Reader("modules", 3, _write_modules, _read_modules),
    Reader("glue", 3, _write_glue, _read_glue),
    Reader("parallel", 3, _write_parallel, _read_parallel),
    Reader("squad", 3, _write_squad, _read_squad),
    Reader("pairs", 2, _write_pairs, _read_pairs),
    Reader("text", 2, _write_text, _read_text),
    Reader("options", 3, _file("headcount.toml", _options), _read_options),
    Reader("pruned", 4, _write_pruned, _read_pruned),
    Reader("config", 2, write_config, read_config),
    Reader("page", 3, _write_page, _read_page),
    Reader("search", 3, _write_search, read_search),
    Reader("study", 3, write_study, read_study),
    Reader("leases", 2, write_leases, read_leases),
)
