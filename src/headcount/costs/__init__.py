"""What heads cost: parameters, FLOPs, cache and measured time."""
