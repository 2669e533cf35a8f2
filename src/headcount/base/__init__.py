"""What every room stands on: errors, files, names, options, registries, text. Needs no torch."""

from typing import TYPE_CHECKING

from headcount.base.lazy import lazily

if TYPE_CHECKING:
    from headcount.base.errors import HeadcountError as HeadcountError
    from headcount.base.errors import MissingExtraError as MissingExtraError
    from headcount.base.errors import NotFoundError as NotFoundError
    from headcount.base.errors import UnsupportedError as UnsupportedError
    from headcount.base.errors import UsageError as UsageError
    from headcount.base.json_object import JsonObject as JsonObject
    from headcount.base.options import checked as checked
    from headcount.base.options import to_plain as to_plain
    from headcount.base.registry import Entry as Entry
    from headcount.base.registry import Registry as Registry

__getattr__, __dir__ = lazily(__name__)
