"""Files of arrays (.npz), refused by their sizes before any is read; nothing in them is ever run.

arrays = read_npz(path, "trace of gates")
"""

from __future__ import annotations

import math
import os
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.base.errors import HeadcountError, NotFoundError, UsageError
from headcount.base.files import LARGEST, require_file
from headcount.base.text import short

if TYPE_CHECKING:
    from numpy.typing import NDArray

ARRAYS = 2**31
"""Bytes that the arrays of one file may take, all together."""
PACKED = 200
"""How many times its own size a file of arrays may unpack to, once that is more than LARGEST."""
NPY = re.compile(
    r"{'descr': '([<>|](?:[biuf][1248]|U\d{1,9}))', 'fortran_order': (True|False), "
    r"'shape': \(((?:\d{1,12}, ?)*(?:\d{1,12})?)\), } *\n"
)
"""The header of a .npy file as numpy writes it: numbers or text, never objects."""


def read_npz(
    path: str | os.PathLike[str], kind: str, largest: int = ARRAYS
) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file, refused by their sizes before any is read; nothing is run."""
    path = Path(path)
    complaint = f"{path} is no {kind}"
    require_file(path, kind)
    try:
        with path.open("rb") as file:
            return _unpacked(file, path.stat().st_size, largest, complaint)
    except HeadcountError:
        raise
    except _UNREADABLE as error:
        if isinstance(error, OSError) and not path.is_file():
            raise NotFoundError(
                f"Cannot read the {kind} {path}: {error.strerror or error}."
            ) from error
        reason = str(error) or type(error).__name__
        raise UsageError(f"{complaint}, or only a part of one: {reason}.") from error


_UNREADABLE = (
    OSError, ValueError, TypeError, EOFError, KeyError, OverflowError, RuntimeError,
    struct.error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def _unpacked(file: Any, size: int, largest: int, complaint: str) -> dict[str, NDArray[Any]]:
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        if total > min(largest, max(LARGEST, PACKED * size)):
            raise UsageError(f"{complaint}: its {size:,} bytes would unpack to {total:,}.")
        return {member.filename.removesuffix(".npy"): _array(archive, member) for member in members}


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """One array; numpy's own reader would take the header's word for its size."""
    import numpy as np

    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{short(member.filename)} is packed in a way numpy does not use")
    with archive.open(member) as file:
        start = file.read(8)
        wide = 2 if start == b"\x93NUMPY\x01\x00" else 4
        length = int.from_bytes(file.read(wide), "little")
        header = file.read(min(length, 4096)).decode("latin-1")
        header_match = NPY.fullmatch(header)
        if start[:6] != b"\x93NUMPY" or len(header) != length or header_match is None:
            raise ValueError(f"{short(member.filename)} is no array of numbers or text")
        dtype = np.dtype(header_match[1])
        shape = tuple(int(digits) for digits in re.findall(r"\d+", header_match[3]))
        size = math.prod(shape) * dtype.itemsize
        if size != member.file_size - 8 - wide - length:
            raise ValueError(f"{short(member.filename)} has another size than it says")
        data = file.read()  # to its end, where the sum over it is checked
    if len(data) != size:
        raise EOFError(f"{short(member.filename)} ends early")
    array = np.ndarray(shape, dtype, data, order="F" if header_match[2] == "True" else "C")
    return array.astype(dtype.newbyteorder("="))
