"""Output projections solved again after heads went, from unlabelled inputs and without training."""
