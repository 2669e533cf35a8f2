"""Removal on real checkpoints: removed against masked, saved and loaded again.

    python benchmarks/coverage/real_weights.py FOLDER…  # model folders; pickled weights are allowed

Prints, for each checkpoint, the largest difference between removed and masked (relative to the
largest value) over four patterns, eager and sdpa, and between saved and loaded.
"""

from __future__ import annotations

import os
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import torch
from transformers.utils import logging

from headcount.heads import Head, Layout, Mask
from headcount.models.find import layout
from headcount.models.gates import gate
from headcount.models.load import load
from headcount.models.probe import probe_inputs, relative_difference, run
from headcount.models.remove import remove


def main(folders: list[str]) -> int:
    if not folders:
        print(__doc__, file=sys.stderr)
        return 2
    logging.disable_progress_bar()
    worst = 0.0
    for folder in folders:
        for kind in ("eager", "sdpa"):
            model = load(folder, allow_pickle=True, attn_implementation=kind, model_type="bert")
            full = layout(model)
            print(
                f"{os.path.basename(folder.rstrip('/'))}  {type(model).__name__}  {kind}  {full!r}"
            )
            for name, mask in patterns(full).items():
                removed, saved = check(model, mask)
                worst = max(worst, removed, saved)
                print(f"  {name:26} {len(mask):4} heads  removed {removed:.1e}  loaded {saved:.1e}")
    print(f"largest difference {worst:.1e}")
    return 0 if worst <= 1e-5 else 1


def patterns(full: Layout) -> dict[str, Mask]:
    def keep(rule) -> Mask:
        return Mask(full, frozenset(head for head in full if rule(head)))

    def draw(head: Head) -> bool:
        return hash((head.layer * 31 + head.index * 17) % 7) < 4

    return {
        "uneven": keep(draw),
        "half of every layer": keep(lambda head: head.index % 2 == 0),
        "alternate layers emptied": keep(lambda head: head.layer % 2 == 1),
        "all emptied": keep(lambda head: False),
    }


def check(model, mask: Mask) -> tuple[float, float]:
    inputs = probe_inputs(model, batch=4, length=33, seed=3)
    small = remove(model, mask)
    with gate(model, mask):
        expected = run(model, inputs)
    pruned = run(small, inputs)
    with tempfile.TemporaryDirectory() as folder:
        small.save_pretrained(f"{folder}/small")
        again = load(f"{folder}/small", attn_implementation=model.config._attn_implementation)
    return relative_difference(expected, pruned), relative_difference(pruned, run(again, inputs))


if __name__ == "__main__":
    torch.set_num_threads(2)
    sys.exit(main(sys.argv[1:]))
