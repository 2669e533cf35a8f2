"""What makes the weights of the shipped pocket models: `python -m tools.pocket.build`."""
