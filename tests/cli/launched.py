"""A headcount command as one of several processes, each noting which heads and gates it ends with.

accelerate launch --num_processes 2 … launched.py NOTES prune …
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import headcount.runs.prune as study
from headcount.cli.main import main

if __name__ == "__main__":
    own, notes, rank = study.prune, Path(sys.argv[1]), os.environ["RANK"]

    def noted(*args: Any, **settings: Any) -> study.Pruned:
        found = own(*args, **settings)
        (notes / f"mask-{rank}.json").write_text(json.dumps(found.mask.to_json()))
        if found.trace is not None:
            found.trace.save(notes / f"gates-{rank}.npz")
        return found

    study.prune = noted
    sys.exit(main(sys.argv[2:]))
