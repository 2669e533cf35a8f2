"""The search: how many heads does a model need? Prunes are chosen as results come in."""
