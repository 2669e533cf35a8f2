"""Figures and pages from what was measured. Nothing here imports torch."""
