"""Models for those who do not have headcount: one file for each group of formats."""
