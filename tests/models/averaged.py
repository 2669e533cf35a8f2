"""One of two processes that differentiate the same gates, each on half of a batch.

averaged.py FOLDER, with RANK, WORLD_SIZE and the address of the first in the environment
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

from headcount.models.find import layout
from headcount.models.gates import gate, open_gates
from headcount.models.probe import probe_inputs
from models.zoo import build

if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, model = torch.distributed.get_rank(), build("bert")
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    inputs = {k: v[rank * 2 : rank * 2 + 2] for k, v in probe_inputs(model, batch=4).items()}
    gates = open_gates(layout(model))
    with gate(wrapped, gates):
        wrapped(**inputs).logits.square().mean().backward()
    torch.save([each.grad for each in gates["encoder"]], Path(sys.argv[1]) / f"{rank}.pt")
    torch.distributed.barrier()
    os._exit(0)  # gloo's threads can keep an ending process from ending
