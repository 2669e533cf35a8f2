"""How alike heads are: distances between their attention, and what follows from them."""
