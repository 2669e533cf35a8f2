"""Gates that are trained together with the weights: which heads stay is learned, not decided."""
