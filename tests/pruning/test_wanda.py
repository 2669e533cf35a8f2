from __future__ import annotations

import numpy as np

from headcount.pruning.select import prepare
from models.zoo import build
from pruning.conftest import data
from pruning.test_head_statistics import stored


def test_heads_go_by_the_papers_score():
    """By numpy from stored activations, for every number of heads."""
    model = build("bert")
    (batch,) = data(model)
    scores = {}
    for layer in range(4):
        path = f"bert.encoder.layer.{layer}.attention.output.dense"
        z = stored(model, batch, path)
        w = model.get_submodule(path).weight.detach().double().numpy()  # (output, input)
        for head in range(4):
            part = slice(8 * head, 8 * head + 8)
            scores[layer, head] = np.linalg.norm(w[:, part]) * np.linalg.norm(z[:, part])
    decide = prepare(model, "wanda", inputs=[batch])
    order = sorted(scores, key=scores.__getitem__)
    for count in (1, 5, 8, 15):
        gone = {(head.layer, head.index) for head in decide(count / 16, 0).dropped}
        assert gone == set(order[:count])
