from __future__ import annotations

from headcount.base.extras import EXTRAS, Extra


def test_what_is_missing_is_named_with_the_command_that_brings_it() -> None:
    extra = Extra(name="odd", summary="", modules=("json", "no_such_module_here"))
    assert extra.missing == ("no_such_module_here",)
    assert extra.command == "pip install 'headcount[odd]'"
    assert Extra(name="here", summary="", modules=("json",)).missing == ()
    assert len({each.name for each in EXTRAS}) == len(EXTRAS)
