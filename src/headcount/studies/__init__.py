"""Runs from the question to the record: a model cut and scored once, or along a curve."""
