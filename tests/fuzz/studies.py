"""Damage to study files and to the leases in a study's folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import yaml

from fuzz import damage
from fuzz.trees import Gentle, damaged
from headcount.base.errors import UsageError

STUDY: dict[str, Any] = {
    "name": "probes", "about": "Which?", "keep": "records", "threads": 1, "retries": 2,
    "lease": 60.0,
    "defaults": {"task": "pocket-sentiment", "options": {}},
    "runs": {
        "base": {"kind": "probe", "model": "none", "seeds": 2, "seconds": 3, "launch": "a b",
                 "keep": "models", "options": {"say": "x"}},
        "after": {"kind": "probe", "model": {"run": "base"}, "seeds": [0, 1], "launch": ["a", "b"],
                  "grid": {"options.wait": [0.0, 0.1]}, "exclude": [{"wait": 0.1, "seed": 0}]},
        "cut": {"kind": "prune", "model": "pocket", "methods": ["random", {"name": "importance"}],
                "ratios": [0.25, 0.5], "seeds": 2, "options": {"baseline": 0},
                "overrides": [{"when": {"method": "random"}, "set": {"options.baseline": 1}}]},
        "scored": {"kind": "evaluate", "model": {"each": "cut", "ratio": 0.5}},
        "last": {"kind": "probe", "model": {"best": "base"}},
    },
}  # fmt: skip
HOLDER = {"host": "far", "machine": "far", "pid": 7, "began": 1.0, "job": ["1", "0"], "taken": 1.0}
MARKS = ("lease-000001.json", "lease-000002.json", "failed-000001.json", "again-000001.json",
         "lease-999999.json", "lease-0000000000000001.json", "lease-٠٠٠٠٠١.json")  # fmt: skip
TIMES = (0, 1, 2**31, 2**32, 10**10)


def write_study(folder: Path, rng: Random) -> Path:
    """A study file as YAML or JSON."""
    if rng.random() < 0.5:
        (folder / "study.json").write_bytes(damage.json_file(STUDY, rng))
        return folder / "study.json"
    good = yaml.safe_dump(json.loads(json.dumps(damaged(STUDY, rng)))).encode()
    (folder / "study.yaml").write_bytes(damage.in_bytes(good, rng) if rng.random() < 0.3 else good)
    return folder / "study.yaml"


def read_study(path: Path) -> None:
    """Plan it, and look at what is there; nothing of it lies outside of its folder."""
    from headcount.studies.study import study

    found = study(path, path.parent / "out")
    found.plan(), found.status(), found.table()
    inside = os.path.realpath(path.parent / "out" / "studies") + os.sep
    if not os.path.realpath(found._file).startswith(inside):
        raise AssertionError(f"outside: {found._file}")


def write_leases(folder: Path, rng: Random) -> Path:
    """A folder of a study in which somebody works, or did."""
    claims = folder / "claims" / "a"
    claims.mkdir(parents=True)
    names = MARKS[:1] if isinstance(rng, Gentle) else rng.sample(MARKS, rng.choice((1, 1, 2, 3)))
    for name in names:
        (claims / name).write_bytes(damage.json_file(_holder(rng), rng))
        os.utime(claims / name, (rng.choice(TIMES),) * 2)
    return folder


def _holder(rng: Random) -> dict[str, Any]:
    """Of this machine at times: then its process is looked for."""
    from headcount.studies.lease import machine

    return HOLDER | ({"machine": machine()} if rng.random() < 0.5 else {})


def read_leases(path: Path) -> None:
    """See who works, and take the run over where it can be."""
    from headcount.studies.ledger import Ledger, holder_of

    ledger = Ledger(path)
    state = ledger.states(["a"])["a"]
    holder_of(state)
    is_damaged = state.name == "stale" and state.holder is None
    if is_damaged:
        ledger.put_lease_aside("a", state.epoch)
    lease = ledger.claim("a", again=True)
    if lease is None:
        if ledger.state("a").name != "running":
            raise AssertionError(f"nobody has it, and nobody can: {ledger.state('a')}")
        return
    if not lease.mine:
        raise AssertionError("taken, and not mine")
    lease.release()
    ledger.sweep(["a"])
    if is_damaged:
        raise UsageError("The lease was damaged, is put aside, and the run can be taken.")
