"""CPU kernels of the seven distances, compiled by numba the first time each is asked for.

Threads are Python threads over kernels that release the GIL (`threads.py`), not numba's `prange`:
numba's default threading layer aborts the process when two callers use it at once.
"""
