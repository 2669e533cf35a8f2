"""What is done to a model after its heads were removed: steps, one file each (`repairs.py`)."""
