"""Short names for content stay what they are: folders of runs are called by them."""

from __future__ import annotations

import hashlib

from headcount.base.digest import digest, plain_digest


def test_a_digest_is_that_of_all_pieces_together():
    assert digest("abc") == hashlib.blake2b(b"abc", digest_size=8).hexdigest() == "d8bb14d833d59559"
    assert digest(["a", b"b", memoryview(b"c")]) == digest(b"abc") == digest(iter(["abc"]))
    assert digest("abc", size=16) == hashlib.blake2b(b"abc", digest_size=16).hexdigest()
    assert digest([]) == digest("")


def test_plain_data_is_named_whatever_the_order_of_its_keys():
    assert plain_digest({"a": 1, "b": [None, 2.5]}) == plain_digest({"b": [None, 2.5], "a": 1})
    assert plain_digest({"a": 1}) == digest('{"a": 1}') != plain_digest({"a": 1.0})
    assert plain_digest({1, 2}.__class__) == digest("\"<class 'set'>\"")
