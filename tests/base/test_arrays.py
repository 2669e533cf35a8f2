from __future__ import annotations

import tracemalloc
import zipfile

import numpy as np
import pytest

from fuzz.damage import become, bomb, npy, zipped
from headcount.base.arrays import read_npz
from headcount.base.errors import NotFoundError, UsageError

ARRAYS = {
    "text": np.array("{}"),
    "none": np.zeros((0, 3)),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "turned": np.arange(3, dtype=">i4"),
    "flags": np.array([True, False]),
}


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_arrays_come_back(tmp_path, write):
    write(tmp_path / "a.npz", **ARRAYS)
    found = read_npz(tmp_path / "a.npz", "trace")
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype.newbyteorder("=")


@pytest.mark.parametrize("what", ["pipe", "/dev/zero"])
def test_what_is_no_file_is_not_waited_for(tmp_path, what):
    become(tmp_path / "a.npz", what)
    with pytest.raises(NotFoundError, match=r"Cannot read the trace .*it is a (pipe|device), not"):
        read_npz(tmp_path / "a.npz", "trace")


def test_a_bomb_of_arrays_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(bomb("steps.npy"))
    assert path.stat().st_size < 3 * 2**20
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match=r"its 2,\d+,\d+ bytes would unpack to 2,147,\d+,\d+"):
            read_npz(path, "trace")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


GOOD = npy(np.zeros(2))


@pytest.mark.parametrize(
    "member",
    [
        GOOD.replace(b"'<f8'", b"'|O8'"),
        GOOD.replace(b"(2,)", b"(9,)"),
        GOOD[:-1],
        GOOD + b"0",
        GOOD.replace(b"'shape'", b"'shapf'"),
        GOOD.replace(b"NUMPY", b"numpy"),
        b"",
    ],
)
def test_what_is_no_array_of_numbers_is_one_sentence(tmp_path, member):
    (tmp_path / "a.npz").write_bytes(zipped([("x.npy", member)]))
    with pytest.raises(UsageError, match=r"a\.npz is no trace, or only a part of one: 'x\.npy' "):
        read_npz(tmp_path / "a.npz", "trace")


def test_a_damaged_or_missing_archive_is_one_sentence(tmp_path):
    path = tmp_path / "a.npz"
    with pytest.raises(NotFoundError, match="No such file"):
        read_npz(path, "trace")
    with pytest.raises(NotFoundError, match="it is a folder, not a file"):
        read_npz(tmp_path, "trace")
    data = zipped([("x.npy", GOOD)])
    for damaged in (b"", b"no zip", data[:-5], data[:60] + b"\xff" + data[61:]):
        path.write_bytes(damaged)
        with pytest.raises(UsageError, match="is no trace, or only a part of one"):
            read_npz(path, "trace")
    path.write_bytes(zipped([("x.npy", GOOD)], zipfile.ZIP_LZMA))
    with pytest.raises(UsageError, match="packed in a way numpy does not use"):
        read_npz(path, "trace")
