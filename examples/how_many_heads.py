"""How many heads does a model need on a task? The answer in one sentence, and the smaller model.

python how_many_heads.py ./mrpc mrpc 1% glue      # model, task, loss that is allowed, data
python how_many_heads.py                          # the pocket model, offline, quick
"""

from __future__ import annotations

import sys

import headcount as hc
from headcount.tasks.catalog import open_task


def main(model: str, task: str, max_drop: str, data: str | None, quick: bool) -> None:
    result = hc.search(
        model,
        open_task(task, data=data) if data else task,
        max_drop=max_drop,
        calibration=hc.Calibration(samples=64) if quick else None,
        scoring=hc.Scoring(limit=60, bootstrap=200) if quick else None,
        search_options=hc.SearchOptions(seeds=1, bench=False) if quick else None,
        baseline=1 if quick else 3,
        out="search",
    )
    print(result.sentence)
    print("The model: search/model. The page: report.html.")
    hc.report("search", out="report.html")


if __name__ == "__main__":
    arguments = sys.argv[1:] or ["pocket", "pocket-corpus", "5%"]
    main(*arguments[:3], data=arguments[3] if len(arguments) > 3 else None, quick=not sys.argv[1:])
