"""How many attention heads does your transformer need? Measure them, remove them, prove the cost.

Every name below is imported on first use, so `import headcount` is quick and needs no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headcount.base.errors import HeadcountError as HeadcountError
    from headcount.behaviour.measure import roles as roles
    from headcount.behaviour.result import load_roles as load_roles
    from headcount.changes.measure import transfer as transfer
    from headcount.changes.sentence import attention as attention
    from headcount.costs.cost import inspect as inspect
    from headcount.costs.speed import bench as bench
    from headcount.exports.export import export as export
    from headcount.heads import Head as Head
    from headcount.heads import Layout as Layout
    from headcount.heads import Mask as Mask
    from headcount.heads import Scores as Scores
    from headcount.learned.methods import HardConcrete as HardConcrete
    from headcount.learned.methods import StraightThrough as StraightThrough
    from headcount.learned.methods import Subset as Subset
    from headcount.likeness.measure import redundancy as redundancy
    from headcount.likeness.result import load_redundancy as load_redundancy
    from headcount.models.capture import capture as capture
    from headcount.models.find import layout as layout
    from headcount.models.gates import gate as gate
    from headcount.models.model_options import ModelOptions as ModelOptions
    from headcount.models.modules import load_into as load_into
    from headcount.models.modules import save as save
    from headcount.models.packed import unpack as unpack
    from headcount.models.remove import remove as remove
    from headcount.papers.reproduce import claims as claims
    from headcount.papers.reproduce import reproduce as reproduce
    from headcount.papers.scales import DataPaths as DataPaths
    from headcount.pruning.attention_drop import AttentionDrop as AttentionDrop
    from headcount.pruning.cluster import Cluster as Cluster
    from headcount.pruning.flap import Flap as Flap
    from headcount.pruning.gnorm import Gnorm as Gnorm
    from headcount.pruning.importance import Importance as Importance
    from headcount.pruning.kwon import Kwon as Kwon
    from headcount.pruning.layers import Layers as Layers
    from headcount.pruning.magnitude import Magnitude as Magnitude
    from headcount.pruning.meta import Meta as Meta
    from headcount.pruning.minitron import Minitron as Minitron
    from headcount.pruning.pattern import Pattern as Pattern
    from headcount.pruning.random import Random as Random
    from headcount.pruning.select import select as select
    from headcount.pruning.surgeon import Surgeon as Surgeon
    from headcount.pruning.wanda import Wanda as Wanda
    from headcount.repair.distil import Distil as Distil
    from headcount.repair.distillation import distil as distil
    from headcount.repair.finetune import Finetune as Finetune
    from headcount.repair.lora import Lora as Lora
    from headcount.repair.recover import Recover as Recover
    from headcount.repair.recovery import recover as recover
    from headcount.runs.execute import run as run
    from headcount.runs.kinds.prune import Prune as Prune
    from headcount.runs.prune import prune as prune
    from headcount.runs.record import Record as Record
    from headcount.runs.record import load_record as load_record
    from headcount.runs.run import Run as Run
    from headcount.sensitivity.gradients import importance as importance
    from headcount.studies.compare import compare as compare
    from headcount.studies.curve import curve as curve
    from headcount.studies.executors.protocol import ExecutorOptions as ExecutorOptions
    from headcount.studies.search.options import SearchOptions as SearchOptions
    from headcount.studies.search.search import search as search
    from headcount.studies.study import study as study
    from headcount.studies.sweep import sweep as sweep
    from headcount.tasks.calibration import Calibration as Calibration
    from headcount.tasks.in_memory import task as task
    from headcount.tasks.opening import load as load
    from headcount.training.evaluate import evaluate as evaluate
    from headcount.training.evaluation import difference as difference
    from headcount.training.finetune import finetune
    from headcount.training.logging import Logging as Logging
    from headcount.training.options import TrainOptions as TrainOptions
    from headcount.training.scoring import Scoring as Scoring
    from headcount.views.page.report import report as report

    train = finetune

__version__ = "0.1.0"

# Public name -> where it lives. A room makes a name public by adding a line here (and above, for
# type checkers).
_PUBLIC = {
    "Head": "headcount.heads:Head",
    "HeadcountError": "headcount.base.errors:HeadcountError",
    "Layout": "headcount.heads:Layout",
    "Mask": "headcount.heads:Mask",
    "Scores": "headcount.heads:Scores",
    "AttentionDrop": "headcount.pruning.attention_drop:AttentionDrop",
    "Flap": "headcount.pruning.flap:Flap",
    "Kwon": "headcount.pruning.kwon:Kwon",
    "Magnitude": "headcount.pruning.magnitude:Magnitude",
    "Minitron": "headcount.pruning.minitron:Minitron",
    "Wanda": "headcount.pruning.wanda:Wanda",
    "Cluster": "headcount.pruning.cluster:Cluster",
    "Gnorm": "headcount.pruning.gnorm:Gnorm",
    "Importance": "headcount.pruning.importance:Importance",
    "Layers": "headcount.pruning.layers:Layers",
    "Meta": "headcount.pruning.meta:Meta",
    "Pattern": "headcount.pruning.pattern:Pattern",
    "Random": "headcount.pruning.random:Random",
    "Surgeon": "headcount.pruning.surgeon:Surgeon",
    "HardConcrete": "headcount.learned.methods:HardConcrete",
    "StraightThrough": "headcount.learned.methods:StraightThrough",
    "Subset": "headcount.learned.methods:Subset",
    "Record": "headcount.runs.record:Record",
    "Run": "headcount.runs.run:Run",
    "run": "headcount.runs.execute:run",
    "load_record": "headcount.runs.record:load_record",
    "Prune": "headcount.runs.kinds.prune:Prune",
    "Logging": "headcount.training.logging:Logging",
    "Calibration": "headcount.tasks.calibration:Calibration",
    "ExecutorOptions": "headcount.studies.executors.protocol:ExecutorOptions",
    "ModelOptions": "headcount.models.model_options:ModelOptions",
    "DataPaths": "headcount.papers.scales:DataPaths",
    "Distil": "headcount.repair.distil:Distil",
    "Finetune": "headcount.repair.finetune:Finetune",
    "Lora": "headcount.repair.lora:Lora",
    "Recover": "headcount.repair.recover:Recover",
    "Scoring": "headcount.training.scoring:Scoring",
    "SearchOptions": "headcount.studies.search.options:SearchOptions",
    "TrainOptions": "headcount.training.options:TrainOptions",
    "attention": "headcount.changes.sentence:attention",
    "bench": "headcount.costs.speed:bench",
    "capture": "headcount.models.capture:capture",
    "claims": "headcount.papers.reproduce:claims",
    "compare": "headcount.studies.compare:compare",
    "curve": "headcount.studies.curve:curve",
    "difference": "headcount.training.evaluation:difference",
    "distil": "headcount.repair.distillation:distil",
    "evaluate": "headcount.training.evaluate:evaluate",
    "export": "headcount.exports.export:export",
    "gate": "headcount.models.gates:gate",
    "importance": "headcount.sensitivity.gradients:importance",
    "inspect": "headcount.costs.cost:inspect",
    "layout": "headcount.models.find:layout",
    "load": "headcount.tasks.opening:load",
    "load_into": "headcount.models.modules:load_into",
    "load_redundancy": "headcount.likeness.result:load_redundancy",
    "load_roles": "headcount.behaviour.result:load_roles",
    "prune": "headcount.runs.prune:prune",
    "report": "headcount.views.page.report:report",
    "reproduce": "headcount.papers.reproduce:reproduce",
    "recover": "headcount.repair.recovery:recover",
    "redundancy": "headcount.likeness.measure:redundancy",
    "remove": "headcount.models.remove:remove",
    "roles": "headcount.behaviour.measure:roles",
    "save": "headcount.models.modules:save",
    "search": "headcount.studies.search.search:search",
    "select": "headcount.pruning.select:select",
    "study": "headcount.studies.study:study",
    "sweep": "headcount.studies.sweep:sweep",
    "task": "headcount.tasks.in_memory:task",
    "train": "headcount.training.finetune:finetune",
    "unpack": "headcount.models.packed:unpack",
    "transfer": "headcount.changes.measure:transfer",
}

__all__ = ["__version__", *sorted(_PUBLIC)]  # pyright: ignore[reportUnsupportedDunderAll]


def _fetch(name: str) -> Any:
    module, _, attribute = _PUBLIC[name].partition(":")
    return getattr(import_module(module), attribute)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        from headcount.base.names import did_you_mean

        hint = did_you_mean(name, _PUBLIC)
        raise AttributeError(f"module 'headcount' has no attribute '{name}'.{hint}", name=name)
    value = globals()[name] = _fetch(name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
