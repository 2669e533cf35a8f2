"""Damage to files: bytes, lines, tables, archives of arrays, safetensors; each from a good one."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzz.trees import Gentle, damaged, dumped

OFTEN = 0.02
"""Share of the inputs in which a file becomes something that is none."""
NO_FILES = (
    "pipe", "pipe", "/dev/zero", "/dev/zero", "/dev/null", "/dev/tty", "loop", "nothing", "folder",
)  # fmt: skip
MARKS = (0, 1, 0x7F, 0x7FFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)


def no_file(folder: Path, rng: Random) -> None:
    """Now and then one of the files becomes something that is none."""
    if not isinstance(rng, Gentle) and rng.random() < OFTEN:
        files = sorted(each for each in folder.rglob("*") if each.is_file())
        become(rng.choice(files), rng.choice(NO_FILES))


def become(path: Path, what: str) -> None:
    """Put something else in the place of a file.

    Nobody writes to the pipe, and what a device gives has no end: whoever opens them waits.
    """
    path.unlink(missing_ok=True)
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    else:
        path.symlink_to({"loop": path.name, "nothing": "not-there"}.get(what, what))


def in_bytes(data: bytes, rng: Random) -> bytes:
    """One to four hits that know nothing of what they hit."""
    if isinstance(rng, Gentle):
        return data
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, size = rng.randrange(len(data) + 1), rng.choice((1, 2, 4, 8, 64, 1000))
        what = rng.randrange(9)
        if what == 0:
            data = data[:at]
        elif what == 1:
            data = data[at:]
        elif what == 2:
            data = data[:at] + data[at + size :]
        elif what == 3:
            data = data[:at] + rng.randbytes(size) + data[at:]
        elif what == 4:
            data = data[:at] + rng.randbytes(size) + data[at + size :]
        elif what == 5:
            data = data[:at] + bytes([rng.choice((0, 0xFF, 0x20))]) * size + data[at + size :]
        elif what == 6:
            mark = struct.pack("<Q", rng.choice(MARKS))[: rng.choice((1, 2, 4, 8))]
            data = data[:at] + mark + data[at + len(mark) :]
        elif what == 7 and at < len(data):
            data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        else:
            data = data[:at] + data[at : at + size] + data[at:]
    return data


def either(
    sample: Any, rng: Random, inside: Callable[[Any, Random], bytes], good: Callable[[Any], bytes]
) -> bytes:
    """Damage to what the file says, to its bytes, or to both; now and then none."""
    luck = 1.0 if isinstance(rng, Gentle) else rng.random()
    data = inside(sample, rng) if luck < 0.7 else good(sample)
    return in_bytes(data, rng) if 0.55 < luck < 0.98 else data


def json_file(tree: Any, rng: Random) -> bytes:
    """A damaged JSON file."""
    return either(tree, rng, _json_inside, lambda tree: json.dumps(tree).encode())


def _json_inside(tree: Any, rng: Random) -> bytes:
    return dumped(damaged(tree, rng), rng).encode("utf-8", "surrogatepass")


def json_lines(rows: list[Any], rng: Random) -> bytes:
    """A damaged file of JSON lines."""

    def good(rows: list[Any]) -> bytes:
        return "".join(json.dumps(row) + "\n" for row in rows).encode()

    def inside(rows: list[Any], rng: Random) -> bytes:
        lines = [json.dumps(row).encode() for row in rows]
        for _ in range(rng.choice((1, 2))):
            at = rng.randrange(len(lines))
            lines[at] = rng.choice((
                _json_inside(rows[min(at, len(rows) - 1)], rng),
                lines[at][: rng.randrange(len(lines[at]) + 1)],
                b"", b"null", b"[]", b"{}", lines[-1],
            ))  # fmt: skip
        if rng.random() < 0.2:
            rng.shuffle(lines)
        end = rng.choice((b"\n", b"\n", b"\r\n", b"", b"\x00", b"\n\n"))
        return (b"\r\n" if rng.random() < 0.1 else b"\n").join(lines) + end

    return either(rows, rng, inside, good)


def delimited(rows: list[list[str]], mark: str, rng: Random) -> bytes:
    """A damaged CSV or TSV file."""
    odd = (
        "", '"', '""', "\n", "\r", "\x00", "\t", ",", "\x1b[31m", "$a$", "nan", "1e999", "-1",
        "x" * 140_000, "é\u2028", "'", '"open', "²", "9" * 5000, "\ufeff",
    )  # fmt: skip

    def good(rows: list[list[str]]) -> bytes:
        return "\n".join(mark.join(row) for row in rows).encode() + b"\n"

    def inside(rows: list[list[str]], rng: Random) -> bytes:
        rows = [list(row) for row in rows]
        for _ in range(rng.choice((1, 2, 3))):
            row = rng.choice(rows)
            if row and rng.random() < 0.7:
                row[rng.randrange(len(row))] = rng.choice(odd)
            elif rng.random() < 0.5:
                row[rng.randrange(len(row) + 1) :] = []
            else:
                row.append(rng.choice(odd))
        return good(rows)

    return either(rows, rng, inside, good)


# --- archives of arrays ---

HEADERS = (
    "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
    "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 999999999999), }",
    "{'descr': '<U999999999', 'fortran_order': False, 'shape': (), }",
    "{'descr': [('a', '<f8'), ('b', '|O')], 'fortran_order': False, 'shape': (1,), }",
    "{'descr': ('<f8', (1000000000,)), 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<f8', 'shape': (1,), }",
    "{" * 300,
    "__import__('os').abort()",
    "",
)


def npy(array: np.ndarray) -> bytes:
    """An array as its file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()


def npz(arrays: Mapping[str, np.ndarray], rng: Random) -> bytes:
    """A damaged archive; the text in it (one string array) is damaged as the JSON it is."""
    return either(arrays, rng, _npz_inside, lambda arrays: zipped(_members(arrays)))


def _members(arrays: Mapping[str, np.ndarray]) -> list[tuple[str, bytes]]:
    return [(f"{name}.npy", npy(array)) for name, array in arrays.items()]


def zipped(members: list[tuple[str, bytes]], way: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", way) as archive:
        names: set[str] = set()
        for name, data in members:
            # zipfile warns of a second one of a name: such a one is made by its bytes
            other = name if name not in names else name[:-1] + chr(ord(name[-1]) ^ 1)
            names.add(other)
            archive.writestr(other, data)
    return file.getvalue()


def _npz_inside(arrays: Mapping[str, np.ndarray], rng: Random) -> bytes:
    if rng.random() < 0.03:
        return bomb(next(iter(arrays)) + ".npy")
    changed = dict(arrays)
    members: list[tuple[str, bytes]] | None = None
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(list(changed) or ["x"])
        array = changed.get(name, np.zeros(1))
        what = rng.randrange(7)
        if what <= 2 and name in arrays and arrays[name].dtype.kind == "U":
            text = dumped(damaged(json.loads(str(arrays[name])), rng), rng)
            changed[name] = np.array(text.replace("\x00", "0"))
        elif what <= 3:
            changed[name] = _other_array(array, rng)
        elif what == 4:
            changed.pop(name, None)
        elif what == 5:
            changed[rng.choice(("../x", "y", f"{name}_", "é"))] = changed.pop(name, array)
        else:
            members = _members(changed)
            at = rng.randrange(len(members) or 1)
            header = rng.choice(HEADERS).encode() + b"\n"
            data = b"\x93NUMPY" + bytes([rng.choice((1, 1, 2, 3, 9)), 0])
            data += struct.pack("<H", rng.choice((len(header), len(header), 65535))) + header
            members[at : at + 1] = [(f"{name}.npy", data + bytes(32))]
    data = zipped(members or _members(changed), rng.choice((0, 8, 8, 12, 14)))
    return _other_directory(data, rng) if rng.random() < 0.25 else data


def _other_array(array: np.ndarray, rng: Random) -> np.ndarray:
    ways: tuple[Callable[[], np.ndarray], ...] = (
        lambda: array.astype("f2") if array.dtype.kind in "biuf" else np.zeros(1),
        lambda: array.astype("i8") if array.dtype.kind in "biu" else np.arange(3),
        lambda: array.astype("c16") if array.dtype.kind in "biuf" else np.array(b"abc"),
        lambda: array.astype(">f8") if array.dtype.kind in "biuf" else np.array("{}"),
        lambda: np.array(["a", "b"]),
        lambda: np.array("2020-01-01", dtype="M8[D]"),
        lambda: array[..., None],
        lambda: array.reshape(-1)[:-1],
        lambda: np.zeros((0, 5), dtype=array.dtype),
        lambda: np.asfortranarray(array),
        lambda: np.full(array.shape, np.nan),
        lambda: np.full(array.shape, -1e300),
        lambda: np.full(array.shape, 2**62),
        lambda: np.array(3.0),
    )
    return rng.choice(ways)()


def _other_directory(data: bytes, rng: Random) -> bytes:
    """Another size, sum, method or flag in the zip's directory than in what it lists."""
    at = data.rfind(b"PK\x01\x02")
    place, size = rng.choice(((8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (42, 4)))
    mark = struct.pack("<Q", rng.choice(MARKS))[:size]
    return data[: at + place] + mark + data[at + place + size :]


@cache
def bomb(name: str, blocks: int = 2048) -> bytes:
    """A zip of two megabytes that unpacks to two gigabytes of zeros under a good header."""
    start = npy(np.zeros(0)).replace(b"(0,), }", b"(%d,), }" % (blocks * 2**17))
    start = start.replace(b" \n", b"\n").ljust(128)[:127] + b"\n"
    start = start[:8] + struct.pack("<H", 118) + start[10:]
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    packed += block * blocks + packer.flush()
    size = len(start) + blocks * 2**20
    shared = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, 0, len(packed), size, len(name), 0)
    local = b"PK\x03\x04" + shared + name.encode()
    central = b"PK\x01\x02" + struct.pack("<H", 20) + shared + struct.pack("<HHHII", 0, 0, 0, 0, 0)
    central += name.encode()
    ends = struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local) + len(packed), 0)
    return local + packed + central + b"PK\x05\x06" + ends


# --- safetensors ---


def safetensors(sample: bytes, rng: Random) -> bytes:
    """A damaged file of weights."""

    def inside(sample: bytes, rng: Random) -> bytes:
        (size,) = struct.unpack("<Q", sample[:8])
        tree = damaged(json.loads(sample[8 : 8 + size]), rng)
        text = dumped(tree, rng).encode("utf-8", "surrogatepass")
        said = rng.choice((len(text), len(text), len(text), 0, 2**40, 2**64 - 1))
        return struct.pack("<Q", said) + text + sample[8 + size :]

    return either(sample, rng, inside, bytes)
