"""transformers' own common tests of models, on pruned models: what the dense one passes, they pass.

    python benchmarks/coverage/transformers_tests.py [--only bert,llama] [--archive FILE] [--list]

The tests are those of `tests/test_modeling_common.py` in the source archive of the installed
transformers, which the package client fetches (`--archive` names one that is there). Its tests of
generation and of single models are not in the archive. Every family of tests/models/zoo.py is
built with two layers and pruned: the first keeps half its heads, the second none. Exit code 1 if a
test that the dense model passes fails on the pruned one and is not among EXCEPTIONS.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest
import warnings
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "critical"

import torch
import transformers
from transformers.utils import logging

from headcount.heads import Mask
from headcount.models.find import layout
from headcount.models.probe import find_probe
from headcount.models.pruned import pruned_class
from headcount.models.remove import remove

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from models.zoo import FAMILIES, build, shallow

MISSING = {
    "exporters/test_export.py": "class ExportTesterMixin: pass\n",
    "generation/test_utils.py": "class GenerationTesterMixin: pass\n",
}
"""What the common tests import and the archive does not have."""
EXCEPTIONS = {
    "output_attentions returns nothing under": "output_attentions under sdpa is refused with "
    "advice; transformers returns an empty tuple",
    "has no gradient!": "the norm before a layer without heads has no effect, so no gradient",
    "Expected reduction dim": "a layer without heads has attention for 0 heads, and the test takes "
    "its maximum",
    "test_sliding_window_mask": "the same, and the test expects attention outside the window",
    "test_can_init_all_missing_weights": "new weights are drawn for all heads and then cut, so the "
    "same seed gives others than for the heads that are left",
    "test_reverse_loading_mapping": "saved under the names that the model has now, not under "
    "older ones, in which a pruned model would not be found again",
}
"""What a pruned model cannot pass, by words of the test's name or of its error, and why."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="comma-separated families of the zoo")
    parser.add_argument("--archive", type=Path, help="transformers' source archive")
    parser.add_argument("--list", action="store_true", help="name the exceptions, too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    families = options.only.split(",") if options.only else list(FAMILIES)
    passed, failed, known = 0, 0, Counter()
    with tempfile.TemporaryDirectory() as work:
        common = fetched(options.archive, Path(work))
        for family in families:
            dense, pruned = (run(common, family, cut=cut) for cut in (False, True))
            whole = [name for name, error in dense.items() if not error]
            errors = [f"{name}: {pruned[name]}" for name in whole if pruned[name]]
            reasons = {error: reason_for(error) for error in errors}
            known.update(filter(None, reasons.values()))
            lost = [error for error, reason in reasons.items() if not reason]
            passed, failed = passed + len(whole) - len(errors), failed + len(lost)
            print(
                f"{family:20}{len(whole):4} passed dense, {len(whole) - len(errors):4} of them "
                f"pruned, {len(errors) - len(lost):2} exceptions, {len(lost):2} failed",
                flush=True,
            )
            for error in errors if options.list else lost:
                print(f"  {error}")
    print(
        f"transformers {transformers.__version__}, {len(families)} families: of the tests that "
        f"dense models pass, pruned ones pass {passed}, {known.total()} are exceptions, "
        f"{failed} failed"
    )
    for reason, count in known.items():
        print(f"{count:4} {reason}")
    return int(failed > 0)


def reason_for(error: str) -> str:
    """Why a pruned model cannot pass this test; "" where it should."""
    return next((reason for words, reason in EXCEPTIONS.items() if words in error), "")


def fetched(archive: Path | None, work: Path) -> ModuleType:
    """transformers' common tests of models as a module, with stubs for what it lacks."""
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    if find_spec("parameterized") is None:  # the only thing that they need and headcount does not
        subprocess.run([*pip, "install", "--no-deps", "-t", work, "parameterized"], check=True)
    if archive is None:
        named = f"transformers=={transformers.__version__}"
        source = ["--no-deps", "--no-binary", "transformers", named]
        subprocess.run([*pip, "download", *source, "-d", work], check=True)
        archive = next(work.glob("*.tar.gz"))
    with tarfile.open(archive) as packed:
        packed.extractall(work, filter="data")
    tests = next(work.glob("transformers-*/tests"))
    for file, text in MISSING.items():
        (tests / file).parent.mkdir(exist_ok=True)
        (tests / file).write_text(text)
    # a name of its own: `tests` may be another folder on the path
    tests.rename(work / "transformers_own_tests")
    sys.path.insert(0, str(work))
    return importlib.import_module("transformers_own_tests.test_modeling_common")


def run(common: ModuleType, family: str, *, cut: bool) -> dict[str, str]:
    """What became of each test: "" where it passed, "skipped", or the last line of its error."""
    case: Any = type(
        f"{family.title().replace('-', '')}ModelTest",
        (common.ModelTesterMixin, common.GenerationTesterMixin, unittest.TestCase),
        settings(family, cut=cut),
    )
    outcomes = {}
    for test in unittest.defaultTestLoader.loadTestsFromTestCase(case):
        result = unittest.TestResult()
        test.run(result)
        errors = [text for _, text in (*result.failures, *result.errors)]
        last = errors[0].strip().splitlines()[-1][:200] if errors else ""
        outcomes[test._testMethodName] = last or ("skipped" if result.skipped else "")
    return outcomes


def settings(family: str, *, cut: bool) -> dict[str, Any]:
    """What a test of transformers knows about its model."""
    model = build(family, **shallow(family, 2))
    inputs = find_probe(model)
    kind, heads = type(model), 4
    if cut:
        model = remove(model, half_and_none(model))
        kind, heads = pruned_class(kind), 2
    config = model.config
    text = config.get_text_config()
    first = next(iter(inputs.values()))
    tester = SimpleNamespace(
        prepare_config_and_inputs_for_common=lambda: (copy.deepcopy(config), dict(inputs)),
        get_config=lambda: copy.deepcopy(config),
        batch_size=len(first),
        seq_length=first.shape[1],
        decoder_seq_length=inputs.get("decoder_input_ids", first).shape[1],
        hidden_size=text.hidden_size,
        num_hidden_layers=2,
        num_attention_heads=heads,
        is_training=True,
    )
    return {
        "model_tester": tester,
        "all_model_classes": (kind,),
        "is_encoder_decoder": config.is_encoder_decoder,
        "_is_composite": text is not config,
    }


def half_and_none(model: Any) -> Mask:
    """Of the first layer of every stack the first half of the groups, of the second nothing."""
    full = layout(model)
    kept = [
        head for head in full if head.layer == 0 and head.index < full[head.stack].heads[0] // 2
    ]
    return Mask.of(full, kept)


if __name__ == "__main__":
    sys.exit(main())
