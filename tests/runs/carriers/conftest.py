"""A trained model for the runs of every kind."""

from runs.carriers.asking import trained

__all__ = ["trained"]
