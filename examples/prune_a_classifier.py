"""Half of a classifier's heads, chosen by importance on your own rows, repaired and scored.

python prune_a_classifier.py ./my-classifier rows.csv  # columns: text, label (the model's numbers)
python prune_a_classifier.py                           # a fresh pocket classifier, offline
"""

from __future__ import annotations

import csv
import sys

from transformers import AutoTokenizer

import headcount as hc
from headcount.tasks.catalog import open_task


def main(folder: str, texts: list[str], labels: list[int]) -> None:
    model, tokenizer = hc.load(folder), AutoTokenizer.from_pretrained(folder)
    held_out = len(texts) // 2  # rows before this one calibrate; the others are scored

    def rows(part: slice) -> list[dict[str, object]]:
        read = tokenizer(texts[part], truncation=True, max_length=128)
        return [
            {"input_ids": ids, "attention_mask": mask, "labels": label}
            for ids, mask, label in zip(
                read["input_ids"], read["attention_mask"], labels[part], strict=True
            )
        ]

    scores = hc.importance(model, rows(slice(held_out)))
    keep = hc.layout(model).kept_at(0.5)
    small = hc.remove(model, scores.normalized("l1").keep_best(keep))
    hc.recover(small, model, texts[:held_out], tokenizer=tokenizer)
    small.save_pretrained("half")
    tokenizer.save_pretrained("half")

    before, after = (hc.evaluate(scored, rows(slice(held_out, None))) for scored in (model, small))
    print(hc.layout(small))
    print(f"{before.score:.3f} → {after.score:.3f}: {hc.difference(before, after)}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        with open(sys.argv[2], newline="", encoding="utf-8") as file:
            table = list(csv.DictReader(file))
        main(sys.argv[1], [row["text"] for row in table], [int(row["label"]) for row in table])
    else:
        task = open_task("pocket-sentiment", size=400)
        pocket = hc.load("pocket", head="sequence-classification", num_labels=2, new_head=True)
        options = hc.TrainOptions(steps=12, learning_rate=1e-3, like_lengths=True)
        hc.train(pocket, task, options=options, out="classifier", evaluation=False)
        dev = task.load("dev", limit=120)
        main("classifier", list(dev.texts[0]), [int(label) for label in dev.labels])
