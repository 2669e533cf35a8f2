from __future__ import annotations

import subprocess
import sys

from headcount.runs.kinds import KINDS
from headcount.runs.kinds.kind import MODEL


def test_options_of_every_kind_are_imported_without_torch():
    code = (
        "import sys; from headcount.runs.kinds import KINDS; KINDS.loaded(); "
        "import headcount.studies.worker; "
        "print([name for name in ('torch', 'transformers', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_other_runs_start_from():
    products = {name: kind.product for name, kind in KINDS.loaded().items()}
    assert products["train"](KINDS["train"]()) == MODEL
    assert products["redundancy"](KINDS["redundancy"]()) == "redundancy.npz"
    assert products["evaluate"](KINDS["evaluate"]()) is None
