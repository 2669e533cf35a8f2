"""The kinds of runs, by name; listing them imports nothing. A new one is a file and a line here.

A kind of run is a frozen class of its options, derived from `RunKind` (`runs/kinds/kind.py`), that
says what comes out and how to `execute` and to `plan` a run of it. Its file imports torch only
inside functions, so that runs can be written down, read and checked anywhere.
"""

from headcount.base.registry import Registry

KINDS = Registry("kind of run")
for _name, _where, _summary in (
    ("train", "train:Train", "A model trained on a task."),
    ("evaluate", "evaluate:Evaluate", "A model scored on a task."),
    ("lm-eval", "lm_eval:LmEval", "A model scored by lm-evaluation-harness."),
    ("redundancy", "redundancy:RedundancyOptions", "A distance for every pair of heads."),
    ("roles", "roles:RolesOptions", "What every head does on data."),
    ("importance", "importance:ImportanceOptions", "How much a loss depends on each head."),
    ("prune", "prune:Prune", "Heads chosen, removed, repaired and scored."),
    ("transfer", "transfer:TransferOptions", "Two checkpoints compared head by head."),
    ("bench", "bench:BenchOptions", "A model timed dense, masked and pruned."),
    ("probe", "probe:Probe", "A trial of a machine: waits, works or fails."),
):
    KINDS.add(_name, f"headcount.runs.kinds.{_where}", _summary)
