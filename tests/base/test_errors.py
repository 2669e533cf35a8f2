from __future__ import annotations

import errno

import pytest

from headcount.base import errors
from headcount.base.errors import (
    HeadcountError,
    NotFoundError,
    StudyError,
    UsageError,
    disk_is_full,
    in_words,
    need_extra,
)


@pytest.mark.parametrize(
    ("name", "code", "builtin"),
    [
        ("UsageError", 2, ValueError),
        ("MissingExtraError", 3, ImportError),
        ("NotFoundError", 4, LookupError),
        ("UnsupportedError", 5, Exception),
        ("StudyError", 6, Exception),
    ],
)
def test_every_error_has_its_own_exit_code(name: str, code: int, builtin: type) -> None:
    kind = getattr(errors, name)
    error = kind("Why.")
    assert isinstance(error, HeadcountError)
    assert isinstance(error, builtin)
    assert error.exit_code == code
    assert str(error) == "Why."


def test_the_base_error_leaves_with_1() -> None:
    assert HeadcountError.exit_code == 1


def test_a_missing_extra_names_the_module_and_the_command() -> None:
    error = need_extra("matplotlib", "report")
    assert "matplotlib" in str(error)
    assert str(error).endswith("pip install 'headcount[report]'")
    assert error.exit_code == 3


def test_what_a_file_brings_into_a_message_stays_one_short_line() -> None:
    assert str(UsageError("no column 'a\n\x1b[2Jb'")) == r"no column 'a\x0a\x1b[2Jb'"
    text = str(NotFoundError("begins " + "x" * 10_000 + " ends."))
    assert len(text) < 1100
    assert text.startswith("begins x")
    assert text.endswith("x ends.")


def test_an_error_without_words_is_told_by_the_code_that_raised_it() -> None:
    with pytest.raises(AssertionError) as raised:
        assert len("a") == 2
    raised.value.args = ()
    told = in_words(raised.value)
    assert told.startswith('AssertionError: assert len("a") == 2 in test_an_error')
    assert in_words(ValueError("a\n b")) == "ValueError: a b"


def test_a_full_disk_is_known_by_its_number_or_by_what_a_library_says_of_it() -> None:
    wrapped = HeadcountError("Cannot write a.json.")
    wrapped.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    assert disk_is_full(wrapped)
    assert disk_is_full(RuntimeError("4096 requested and 512 written"))
    assert not disk_is_full(OSError(errno.EACCES, "Permission denied"))
    assert not disk_is_full(UsageError("There is no task 'No space left'."))
    assert disk_is_full(StudyError("accelerate ended with 1: No space left"), quoted=True)
    assert not disk_is_full(None)
