"""The commands, by name. One line each; nothing is imported until a command runs.

The command `name` is the function `name` in `headcount/cli/name.py`.
"""

from __future__ import annotations

from importlib.util import find_spec

from headcount.base.registry import Registry

COMMANDS = Registry("command")

for _name, _summary in {
    "inspect": "Which heads a model has, with their parameters, memory and FLOPs.",
    "redundancy": "How similar a model's heads are: a distance for every pair.",
    "roles": "What each head does: where it attends, how replaceable it is, what it costs.",
    "importance": "How sensitive a task's loss is to each head.",
    "transfer": "What fine-tuning changed in each head, between two checkpoints.",
    "attention": "Where each head attends in a text, before and after pruning.",
    "prune": "Select heads by a method, remove them, and score the result.",
    "search": "The fewest heads within a loss bound, or the best score within a budget.",
    "curve": "Score against the share of heads removed, for several methods.",
    "compare": "Several methods at one ratio, trained alike and tested against random pruning.",
    "sweep": "Sparsity and score against one hyperparameter of learned gates.",
    "study": "Many runs from one file, here or on a cluster: plan, run, status, table, watch.",
    "reproduce": "A table or figure of the four papers, reproduced beside theirs.",
    "claims": "Test every claim of the papers on finished runs.",
    "remove": "Remove heads from a model and save the smaller one.",
    "bench": "Time a model dense, masked and with its heads removed.",
    "export": "Write a pruned model for plain transformers, ONNX or torch.export.",
    "train": "Fine-tune a model on a task.",
    "run": "Execute the run of a record again.",
    "evaluate": "Score a model on a task.",
    "report": "All results on one page, in a single HTML file.",
    "demo": "The main workflow on the shipped model, offline, in three minutes.",
    "ls": "List the available commands, extras, methods and so on.",
    "doctor": "Check this installation: versions, devices, extras, and a small self-check.",
}.items():
    # Rooms are built one after the other: a command is offered once its file is there.
    if find_spec(f"headcount.cli.{_name}"):
        COMMANDS.add(_name, f"headcount.cli.{_name}:{_name}", _summary)
