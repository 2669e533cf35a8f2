"""What headcount is installed with: what it needs, and its optional parts."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from headcount.base.errors import need_extra

CORE = {
    "torch": "torch",
    "transformers": "transformers",
    "accelerate": "accelerate",
    "datasets": "datasets",
    "safetensors": "safetensors",
    "numpy": "numpy",
    "scipy": "scipy",
    "scikit-learn": "sklearn",
    "numba": "numba",
    "pyyaml": "yaml",
}
"""What headcount cannot do without: its name on the index -> the name it is imported by."""


@dataclass(frozen=True, kw_only=True)
class Extra:
    """One `pip install 'headcount[name]'`."""

    name: str
    summary: str
    modules: tuple[str, ...]
    """What it installs, as imported."""
    optional: tuple[str, ...] = ()
    """Those that it also works without."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The modules that are not installed."""
        return tuple(module for module in self.modules if find_spec(module) is None)

    @property
    def command(self) -> str:
        """What to type to get it."""
        return f"pip install 'headcount[{self.name}]'"


def require_extra(name: str) -> None:
    """Refuse what needs an optional part that is not installed."""
    if missing := missing_of(name):
        raise need_extra(missing[0], name)


def missing_of(name: str) -> tuple[str, ...]:
    """The modules of an optional part that are not installed and must be."""
    extra = next(extra for extra in EXTRAS if extra.name == name)
    return tuple(module for module in extra.missing if module not in extra.optional)


EXTRAS = (
    Extra(name="report", summary="Figures.", modules=("matplotlib",)),
    Extra(name="ray", summary="Studies on a Ray cluster.", modules=("ray",)),
    Extra(name="slurm", summary="Studies as SLURM jobs.", modules=("submitit",)),
    Extra(name="mt", summary="Translation tasks.", modules=("sacrebleu", "sentencepiece")),
    Extra(name="images", summary="Tasks on images.", modules=("PIL",)),
    Extra(
        name="onnx",
        summary="Export to ONNX and run it.",
        modules=("onnx", "onnxscript", "onnxruntime"),
    ),
    Extra(
        name="gguf",
        summary="Export for llama.cpp, and run it.",
        modules=("gguf", "xllamacpp"),
        optional=("xllamacpp",),
    ),
    Extra(name="lora", summary="LoRA as a repair.", modules=("peft",)),
    Extra(name="lm-eval", summary="Scores by lm-evaluation-harness.", modules=("lm_eval",)),
)
