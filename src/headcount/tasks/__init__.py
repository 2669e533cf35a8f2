"""What is measured on: GLUE, own files, masked LM, translation and the pocket world."""

from headcount.tasks.catalog import TASKS, open_task
from headcount.tasks.source import Source
from headcount.tasks.task import Examples, Task

__all__ = ["TASKS", "Examples", "Source", "Task", "open_task"]
