"""The pocket world: small made-up tasks that need no network. Its models: `models.shipped`."""

from headcount.tasks.pocket.world import POCKET_TASKS, SPLITS, PocketTask, examples, split_of

__all__ = ["POCKET_TASKS", "SPLITS", "PocketTask", "examples", "split_of"]
