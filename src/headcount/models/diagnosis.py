"""What `headcount doctor` looks at; every finding is plain data."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from headcount import __version__
from headcount.base.extras import CORE, EXTRAS


def examine() -> dict[str, Any]:
    """Everything there is to know; never raises for what is missing or broken."""
    report: dict[str, Any] = {
        "headcount": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages(),
        "extras": extras(),
        "memory": memory(),
        "offline": offline(),
    }
    missing = [name for name, number in report["packages"].items() if number is None]
    try:
        if not missing:
            report["threads"] = threads()
            report["devices"] = devices()
            report["attention_interface"] = attention_interface()
            report["self_check"] = self_check()
        report["problems"] = problems(report, missing)
    except Exception as failure:  # installed, but it does not even import
        text = f"{type(failure).__name__}: {failure}"
        report["problems"] = [{"exit_code": 1, "problem": text}]
    return report


def packages() -> dict[str, str | None]:
    """The version of every core package, None where it is missing."""
    return {name: _version(name) if find_spec(module) else None for name, module in CORE.items()}


def extras() -> dict[str, dict[str, Any]]:
    """For each extra: whether it is installed, what is missing, and the command that gets it."""
    return {
        extra.name: {
            "installed": not extra.missing,
            "missing": list(extra.missing),
            "install": extra.command,
        }
        for extra in EXTRAS
    }


def memory() -> dict[str, int]:
    """Bytes of memory, in all and free to use."""
    import psutil

    usage = psutil.virtual_memory()
    return {"total": usage.total, "available": usage.available}


def offline() -> bool:
    """Whether the environment tells transformers to stay off the hub."""
    return any(
        os.environ.get(name, "").upper() in {"1", "ON", "YES", "TRUE"}
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    )


def threads() -> dict[str, Any]:
    """How many threads each part would use."""
    import numba
    import torch

    return {
        "cpus": os.cpu_count(),
        "torch": torch.get_num_threads(),
        "numba": numba.config.NUMBA_NUM_THREADS,  # pyright: ignore[reportAttributeAccessIssue]
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
    }


def devices() -> list[dict[str, Any]]:
    """Where models can run, best first."""
    import torch

    gpus: list[dict[str, object]] = [
        {
            "device": f"cuda:{index}",
            "name": torch.cuda.get_device_name(index),
            "memory": torch.cuda.get_device_properties(index).total_memory,
        }
        for index in range(torch.cuda.device_count())
    ]
    if torch.backends.mps.is_available():
        gpus.append({"device": "mps", "name": "Apple GPU", "memory": None})
    return [*gpus, {"device": "cpu", "name": platform.processor() or "CPU", "memory": None}]


def attention_interface() -> bool:
    """Whether this transformers lets attention and its masks be replaced, which capture needs."""
    import transformers

    return all(
        hasattr(transformers, name) for name in ("AttentionInterface", "AttentionMaskInterface")
    )


def self_check() -> dict[str, Any]:
    """Gate some heads of a small random BERT, remove the same heads: the outputs must agree."""
    import torch
    from transformers import BertConfig, BertModel

    import headcount as hc

    config = BertConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=16, max_position_embeddings=8, initializer_range=0.2,
    )  # fmt: skip
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = BertModel(config).eval()
            mask = hc.Mask.full(hc.layout(model)).drop([("encoder", 0, 1), ("encoder", 1, 2)])
            inputs = torch.arange(8)[None]
            whole = model(inputs).last_hidden_state
            with hc.gate(model, mask):
                gated = model(inputs).last_hidden_state
            removed = hc.remove(model, mask)(inputs).last_hidden_state
        scale = gated.abs().max()
        error = float((gated - removed).abs().max() / scale)
        effect = float((gated - whole).abs().max() / scale)
    except Exception as failure:  # whatever it is, the doctor reports it
        return {"ok": False, "detail": f"{type(failure).__name__}: {failure}"}
    # A gate that does nothing would agree with a removal that does nothing.
    ok = error < 1e-5 and effect > 1e-3
    return {"ok": ok, "detail": f"removed and gated differ by {error:.1e} (gating: {effect:.1e})"}


def problems(report: dict[str, Any], missing: list[str]) -> list[dict[str, Any]]:
    """What keeps the core from working, each with its exit code and what to do."""
    if missing:
        return [{"exit_code": 3, "problem": f"missing packages: pip install {' '.join(missing)}"}]
    problems: list[dict[str, object]] = []
    if not report["attention_interface"]:
        text = "transformers has no AttentionInterface: pip install 'transformers>=5,<6'"
        problems.append({"exit_code": 1, "problem": text})
    if not report["self_check"]["ok"]:
        problems.append(
            {"exit_code": 1, "problem": f"self-check: {report['self_check']['detail']}"}
        )
    return problems


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # importable all the same: a source tree on the path
        return "unknown"
