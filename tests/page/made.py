"""Files as runs leave them, made by hand without a model: of any size, and with any names.

python tests/page/made.py FOLDER [LAYERS HEADS]      # a folder to try `headcount report` with
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from headcount.heads import Layout, Mask, Scores
from headcount.learned.trace import Trace
from headcount.likeness.result import Measurement, Redundancy

ROLES = ("previous", "next", "same", "first", "separator", "duplicate", "induction")
MORE = {
    "entropy": "bits", "entropy_share": "", "reach": "tokens", "replaceable": "",
    "cost_alone": "accuracy", "cost_alone_repaired": "accuracy", "milliseconds": "ms",
    "kilobytes": "kB",
}  # fmt: skip


def write(path: Path, data: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def record(kind: str, model: str, task: str | None, **result: Any) -> dict[str, Any]:
    """A record with what every one has."""
    command = f"headcount {kind} {model}"
    return {
        "format": "headcount", "version": 1, "kind": kind, "id": result.pop("id", f"{kind}0"),
        "model": model, "task": task,
        "command": command, "seconds": 1.0, "notes": [], "rows": {}, "device": "cpu",
        "run": {"kind": kind, "model": model, "task": task},
        "identity": {"model": model, "task": task, "weights": f"weights of {model}"}, **result,
    }  # fmt: skip


def score_at(kept: int, heads: int) -> float:
    """A made-up accuracy: flat, then falling."""
    gone = 1 - kept / heads
    return round(0.9 - 0.5 * max(0.0, gone - 0.5) ** 1.5 - 0.01 * gone, 6)


def scored(value: float, wide: float = 0.02, split: str = "dev", n: int = 1000) -> dict[str, Any]:
    return {"metric": "accuracy", "split": split, "score": value, "low": round(value - wide, 6),
            "high": round(value + wide, 6), "n": n}  # fmt: skip


def cut(
    model: str, task: str, mask: Mask, method: str, seed: int, id: str, *, split: str = "dev",
    n: int = 1000, easier: float = 0.0,
) -> dict[str, Any]:  # fmt: skip
    """A record of a prune; on rows that are `easier`, all heads score so much more."""
    heads = len(mask.layout)
    drop = 0.0 if method == "surgeon" else 0.05 * mask.sparsity + 0.002 * seed
    after, before = score_at(len(mask), heads) - drop + easier, score_at(heads, heads) + easier
    rows = {"split": split, "n": n}
    lost = round(after - before, 6)
    return record(
        "prune", model, task, id=id, method=method, ratio=round(mask.sparsity, 4), seed=seed,
        recover=False, finetune=None, mask=mask.to_json(), budget={"steps": 0},
        heads={"before": heads, "after": len(mask), "kept": mask.pattern},
        parameters={"before": 1000 * heads + 5000, "after": 1000 * len(mask) + 5000},
        scores={
            "metric": "accuracy", **rows, "before": scored(round(before, 6), **rows),
            "after": scored(round(after, 6), **rows),
            "difference": {"value": lost, "low": lost - 0.01, "high": lost + 0.01},
        },
    )  # fmt: skip


def study(
    folder: Path, layout: Layout, model: str = "model", task: str = "task", seeds: int = 2,
    ratios: tuple[float, ...] = (0.25, 0.5, 0.75, 0.9),
    matrices: tuple[str, ...] = ("random", "task"), distances: tuple[str, ...] = ("js", "cos"),
) -> Path:  # fmt: skip
    """Everything a page can show, of one model."""
    rng = np.random.default_rng(0)
    heads = len(layout)
    worth = rng.gamma(2.0, 0.02, heads)
    scores = Scores(layout, tuple(worth.tolist()))
    errors = Scores(layout, tuple((worth / 10).tolist()))
    write(folder / "importance.json", record(
        "importance", model, task, layout=layout.to_json(), scores=scores.by_layer(),
        stderr=errors.by_layer(), n=500, normalize="none", loss=0.3,
    ))  # fmt: skip
    _curve(folder / "curve", layout, scores, model, task, seeds, ratios)
    _search(folder / "search", layout, scores, model, task)
    _compare(folder / "compare", layout, model, task)
    _sweep(folder / "sweep", layout, model, task)
    write(folder / "roles.json", roles(layout, model, task))
    _redundancy(folder, layout, model, matrices, distances)
    _trace(folder / "gated", layout)
    _bench(folder / "bench.json", heads, model)
    _transfer(folder / "transfer.json", layout, model, task)
    attention(folder / "attention", layout, model)
    return folder


def against(mean: float, verdict: str, seeds: int = 2) -> dict[str, Any]:
    """A paired test as a study writes it."""
    corrected = 0.04 if verdict != "alike" else 0.3
    return {"mean": mean, "low": mean - 0.02, "high": mean + 0.02, "p": 0.02, "seeds": seeds,
            "p_corrected": corrected, "comparisons": 4, "verdict": verdict,
            "seeds_needed": None if verdict != "alike" else 7}  # fmt: skip


def _about(layout: Layout, model: str, task: str) -> dict[str, Any]:
    return {"model": model, "task": task, "metric": "accuracy", "split": "dev",
            "layout": layout.to_json(), "weights": f"weights of {model}"}  # fmt: skip


def _compare(folder: Path, layout: Layout, model: str, task: str) -> None:
    """Methods side by side, all trained alike."""
    heads, summary = len(layout), []
    for method, mean in (("all-heads", 0.91), ("random", 0.7), ("straight-through", 0.85)):
        kept = heads if method == "all-heads" else heads // 2
        row = {"method": method, "kept": kept, "seeds": 3, "mean": mean, "low": mean - 0.03,
               "high": mean + 0.03}  # fmt: skip
        if method != "all-heads":
            row["against_all_heads"] = against(mean - 0.91, "worse", 3)
        if method == "straight-through":
            row["against_random"] = against(0.15, "better", 3)
        summary.append(row)
    about = _about(layout, model, task) | {"ratio": 0.5, "train": {"steps": 10}}
    write(folder / "compare.json", {"about": about, "full": scored(0.9), "summary": summary,
                                    "points": [],
                                    "command": f"headcount compare {model}"})  # fmt: skip


def _sweep(folder: Path, layout: Layout, model: str, task: str) -> None:
    """An option of trained gates, three values of it."""
    heads = len(layout)
    summary = [
        {"value": value, "kept": kept, "seeds": 2, "score": {
            "mean": 0.9 - value, "low": 0.88 - value, "high": 0.92 - value},
         "against_all_heads": against(-value, "alike")}
        for value, kept in ((0.001, heads), (0.01, heads - 2), (0.1, heads // 2))
    ]  # fmt: skip
    about = _about(layout, model, task) | {"over": "mu", "method": "straight-through"}
    write(folder / "sweep.json", {"about": about, "full": scored(0.9), "summary": summary,
                                  "points": [], "command": f"headcount sweep {model}"})  # fmt: skip


def _curve(folder: Path, layout: Layout, scores: Scores, model: str, task: str, seeds: int,
           ratios: tuple[float, ...]) -> None:  # fmt: skip
    rng = np.random.default_rng(1)
    summary, heads = [], len(layout)
    for method in ("random", "surgeon"):
        for ratio in ratios:
            kept, values = layout.kept_at(ratio), []
            for seed in range(seeds):
                if method == "random":
                    order = rng.permutation(heads).astype(float)
                    mask = Scores(layout, tuple(order.tolist())).keep_best(kept)
                else:
                    mask = scores.keep_best(kept)
                id = f"{method}{ratio:g}-{seed}"
                made = cut(model, task, mask, method, seed, id)
                values.append(made["scores"]["after"]["score"])
                write(folder / "runs" / id / "record.json", made)
            mean = float(np.mean(values))
            lost = {"value": mean - 0.9, "low": mean - 0.91, "high": mean - 0.89}
            row = {"method": method, "ratio": ratio, "kept": kept, "seeds": seeds, "mean": mean,
                   "low": mean - 0.01, "high": mean + 0.01, "difference": lost}  # fmt: skip
            if method != "random":
                row["against_random"] = against(0.03, "better" if ratio > 0.5 else "alike", seeds)
            summary.append(row)
    about = _about(layout, model, task)
    full = scored(score_at(heads, heads))
    write(folder / "curve.json", {"about": about, "full": full, "summary": summary, "points": [],
                                  "command": f"headcount curve {model}"})  # fmt: skip


def filed(folder: Path, layout: Layout, seeds: int = 3) -> Path:
    """A folder as `headcount study run` leaves it: trainings, and cuts of each by two methods."""
    rng, names = np.random.default_rng(7), []
    for seed in range(seeds):
        train = {"kind": "train", "model": "hub/base", "task": "task", "seed": seed,
                 "options": {"training": {"steps": 9, "seed": seed}}}  # fmt: skip
        base = folder / "runs" / f"training{seed}"
        made = record("train", "hub/base", "task", evaluation=scored(0.9), id=base.name)
        write(base / "record.json", made | {"run": train})
        for method, samples in (("random", 64), ("random", 256), ("surgeon", 64)):
            scores = Scores(layout, tuple(rng.permutation(len(layout)).astype(float).tolist()))
            name = f"{method}{samples}-{seed}"
            one = cut(str(base), "task", scores.keep_best(len(layout) // 2), method, seed, name)
            options = {"ratio": 0.5, "calibration": {"samples": samples, "seed": seed}}
            one["run"] = {"kind": "prune", "model": train, "task": "task", "seed": seed,
                          "options": options}  # fmt: skip
            one["identity"]["weights"] = f"weights{seed}"
            write(folder / "runs" / name / "record.json", one)
            names.append(name)
    write(folder / "studies" / "methods.json", {"name": "methods", "asked": {}, "runs": names})
    return folder


def _search(folder: Path, layout: Layout, scores: Scores, model: str, task: str) -> None:
    """As `headcount search` writes it."""
    heads, tried = len(layout), []
    chosen, rest = "dev:selection:0.5:0", "dev:held-out:0.5:0"
    for ratio, n, easier in ((0.75, 250, 0.07), (0.5, 500, 0.05)):  # more rows where undecided
        kept = layout.kept_at(ratio)
        id = f"tried{ratio:g}"
        made = cut(model, task, scores.keep_best(kept), "surgeon", 0, id, split=chosen, n=n,
                   easier=easier)  # fmt: skip
        write(folder / "runs" / id / "record.json", made)
        tried.append({
            "method": "surgeon", "kept": kept, "seed": 0, "rows": n,
            "probability": 0.01 if ratio == 0.5 else 0.4,
            "difference": made["scores"]["difference"], "accepted": ratio == 0.5, "id": id,
        })  # fmt: skip
    last = tried[-1]
    final = cut(model, task, scores.keep_best(last["kept"]), "surgeon", 0, "final", split=rest,
                n=500)  # fmt: skip
    write(folder / "model" / "record.json", final)
    write(folder / "search.json", {
        "heads": heads, "kept": last["kept"], "ratio": 0.5, "method": "surgeon",
        "full": 0.9, "full_interval": [0.88, 0.92], "score": score_at(last["kept"], heads),
        "metric": "accuracy", "by": "loss", "difference": last["difference"], "bound": "2 %",
        "within_bound": True, "probability": 0.99, "model": model, "task": task,
        "speedup": {"value": 1.4, "low": 1.3, "high": 1.5},
        "timing": {"batch": 8, "length": 14, "rounds": 15, "device": "cpu", "threads": 1,
                   "milliseconds": {"before": 14.0, "after": 10.0},
                   "shapes": [{"batch": 8, "reads": "14 tokens", "bound": 1.5,
                               "speedup": {"value": 1.4, "low": 1.3, "high": 1.5}}]},
        "parameters": {"before": 1000 * heads + 5000, "after": 1000 * last["kept"] + 5000},
        "rows": {"selection": {"split": chosen, "n": 500}, "held_out": {"split": rest, "n": 500}},
        "tried": tried, "sizes": [row | {"seeds": [0]} for row in tried], "random": None,
        "pattern": "", "command": f"headcount search {model} --data rows",
        "sentence": f"{heads - last['kept']} of the {heads} heads of {model} can go.",
        "out": str(folder),
    })  # fmt: skip


def roles(layout: Layout, model: str, task: str) -> dict[str, Any]:
    """As `headcount roles` writes it."""
    rng, heads = np.random.default_rng(2), len(layout)
    quantities = {}
    for name in (*ROLES, *MORE):
        values = rng.beta(1, 4, heads)
        error = np.full(heads, 0.01)
        quantities[name] = {
            "unit": MORE.get(name, "share"), "what": f"{name}, made up", "values": values.tolist(),
            "stderr": error.tolist(), "low": (values - 0.02).tolist(),
            "high": (values + 0.02).tolist(),
        }  # fmt: skip
    names = [ROLES[place % len(ROLES)] if place % 3 else None for place in range(heads)]
    tokens = ["[CLS]", "the", "dog", "sees", "the", "cat", "[SEP]"]
    examples = [
        {"head": place, "decile": decile, "tokens": tokens, "query": 3,
         "weights": [[2, 0.6], [1, 0.3], [0, 0.1]],
         "after": {"removed": True} if place % 2 else {"weights": [[4, 0.7], [2, 0.2]], "most": []}}
        for place in range(min(heads, 8)) for decile in (10, 5, 1)
    ]  # fmt: skip
    return record("roles", model, task, layout=layout.to_json(), count=100, quantities=quantities,
                  roles=names, chance=0.05, examples=examples)  # fmt: skip


def _redundancy(
    folder: Path, layout: Layout, model: str, files: tuple[str, ...], distances: tuple[str, ...]
) -> None:
    rng, measured = np.random.default_rng(3), {}
    for stack in layout.stacks:
        for name in distances:
            places = rng.normal(size=(stack.total, 4))
            values = np.linalg.norm(places[:, None] - places[None], axis=-1)
            values = (values + values.T) / (2 * max(values.max(), 1e-9))
            np.fill_diagonal(values, 0)
            measured[stack.name, name] = Measurement(values, np.full_like(values, 0.001))
    folder.mkdir(parents=True, exist_ok=True)
    made = {"model": model, "inputs": "random tokens"}
    for name in files:
        found = Redundancy(
            layout=layout, measured=measured, count=50, provenance=made | {"inputs": name}
        )
        found.save(folder / f"{name}.npz")
    before = {
        key: Measurement(each.values[::-1, ::-1], each.stderr) for key, each in measured.items()
    }
    made = {"model": "before", "inputs": files[0]}
    Redundancy(layout=layout, measured=before, count=50, provenance=made).save(folder / "phase.npz")
    for name in (*files, "phase"):
        write(folder / f"{name}.record.json", {"command": f"headcount redundancy {name}"})


def _trace(folder: Path, layout: Layout) -> None:
    rng, heads = np.random.default_rng(4), len(layout)
    trace = Trace(layout=layout, about={"method": "straight-through", "task": "task"})
    values = np.full(heads, 0.5)
    folder.mkdir(parents=True, exist_ok=True)
    for step in range(0, 50, 5):
        before = values > 0
        values = values + rng.normal(-0.05, 0.1, heads)
        trace.note(step, values, values > 0)
        for _ in range(5):
            trace.count(before, values > 0)
    trace.scores = [{"step": step, "score": 0.8 + step / 500, "n": 100} for step in (0, 25, 45)]
    trace.save(folder / "gates.npz")
    write(folder / "gates.record.json", {"command": "headcount prune model --task task"})


def _bench(path: Path, heads: int, model: str) -> None:
    rows = []
    for kind, kept, share in (
        ("dense", heads, 1.0),
        ("masked", heads // 2, 1.01),
        ("removed", heads // 2, 0.7),
    ):
        rows.append({
            "name": kind, "kind": kind, "heads": kept, "sparsity": 1 - kept / heads,
            "seconds": {"median": 0.01 * share, "low": 0.009 * share, "high": 0.011 * share},
            "ratio": {"median": share, "low": share - 0.02, "high": share + 0.02}, "ideal": share,
            "speedup": {"median": 1 / share, "low": 1 / (share + 0.02), "high": 1 / (share - 0.02)},
            "parameters": 1000 * kept + 5000, "memory": 4000 * kept + 20000,
        })  # fmt: skip
    write(path, record("bench", model, None, timings=rows, batch=1, reads="64 tokens", rounds=5,
                       threads=1, share_of_flops=0.4, ceiling=1.67))  # fmt: skip


def _transfer(path: Path, layout: Layout, model: str, task: str) -> None:
    rng = np.random.default_rng(5)
    drift = Scores(layout, tuple(rng.gamma(2, 0.02, len(layout)).tolist()))
    layers = [
        {"stack": stack, "layer": layer, "mean": 0.02 + layer / 100, "mean_stderr": 0.001,
         "max": 0.05 + layer / 100, "max_stderr": 0.002, "hidden": 1.0 + layer,
         "hidden_stderr": 0.1}
        for stack, layer, _ in layout.layers()
    ]  # fmt: skip
    write(path, record(
        "transfer", model, task, layout=layout.to_json(), pretrained="before", finetuned=model,
        inputs="task", drift={"n": 40, "attention": drift.by_layer(), "stderr": drift.by_layer(),
                              "layers": layers},
        weight_change={"heads": drift.by_layer(),
                       "layers": {each.name: [0.1] * len(each.heads) for each in layout.stacks}},
        importance={"task": drift.by_layer()}, correlations={"task": {
            "pearson": 0.5, "low": 0.3, "high": 0.7, "slope": 1.0, "intercept": 0.0}},
        recall=[{"at": 0.5, "value": 0.2, "chance": 0.1}, {"at": 0.9, "value": 0.7, "chance": 0.4}],
    ))  # fmt: skip


def attention(
    folder: Path, layout: Layout, model: str, tokens: int = 9, picture: bool = False
) -> None:
    """Of a text; or of a `picture` of 2 x 4 patches behind a class token."""
    rng, arrays, rows = np.random.default_rng(6), {}, []
    words = [f"word{place}" for place in range(tokens)]
    for place, head in enumerate(layout):
        if place >= 64:
            break
        maps = rng.dirichlet(np.full(tokens, 0.3), tokens)
        arrays[f"before/{head}/0"] = maps.astype(np.float16)
        row = {"stack": head.stack, "layer": head.layer, "head": head.index, "run": 0,
               "entropy": 1.5, "distance": 2.0,
               "most_attended": {"token": "word1", "position": 1, "share": 0.4}}  # fmt: skip
        if place % 2:
            arrays[f"after/{head}/0"] = maps[::-1].astype(np.float16)
            row |= {"after": {"entropy": 1.4}, "divergence": 0.1}
        else:
            row |= {"after": None, "divergence": None}
        rows.append(row)
    more = {}
    if picture:
        words = ["[CLS]", *(f"{place // 4},{place % 4}" for place in range(8))]
        more = {"picture": {"rows": 2, "columns": 4, "start": 1}}
        arrays["picture"] = rng.integers(0, 256, (8, 16, 3), dtype=np.uint8)
    sides = {"queries": words, "keys": words}
    write(folder / "attention.json", more | {
        "model": model, "pruned": "small", "text": " ".join(words), "target": None, "cut": 0,
        "command": f"headcount attention {model} small",
        "tokens": {stack.name: sides for stack in layout.stacks}, "heads": rows,
    })  # fmt: skip
    np.savez_compressed(folder / "attention.npz", **arrays)


if __name__ == "__main__":
    target, *size = sys.argv[1:]
    layers, width = map(int, size or ("4", "6"))
    study(Path(target), Layout.of(encoder=[width] * layers))
