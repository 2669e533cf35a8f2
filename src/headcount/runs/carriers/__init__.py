"""What carries out a run of each kind: one file a kind, named in `runs/carry.py`."""
