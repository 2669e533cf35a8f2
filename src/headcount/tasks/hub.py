"""Rows of a data set of the Hugging Face hub (or of a local folder `datasets` can read)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headcount.base.errors import NotFoundError
from headcount.base.names import unknown

if TYPE_CHECKING:
    from datasets import Dataset

DEV = ("dev", "validation", "valid", "test")


def fetch(name: str, config: str | None, split: str, task: str) -> Dataset:
    """One split as a `datasets.Dataset`; one clear sentence when it cannot be had."""
    import datasets
    from datasets.exceptions import DatasetsError

    try:
        return datasets.load_dataset(name, config, split=split)
    except (OSError, LookupError, ValueError, DatasetsError) as error:
        reason = str(error).splitlines()[0][:160] if str(error) else type(error).__name__
        raise NotFoundError(
            f"No data for task '{task}': '{name}' cannot be fetched ({reason}). "
            "Offline, put train.tsv and dev.tsv in a folder and pass --data DIR."
        ) from error


def split_names(name: str, config: str | None, task: str) -> dict[str, str]:
    """headcount's split names -> the data set's own: train, and the first of dev, validation..."""
    import datasets
    from datasets.exceptions import DatasetsError

    try:
        available = datasets.get_dataset_split_names(name, config)
    except (OSError, LookupError, ValueError, DatasetsError) as error:
        raise NotFoundError(
            f"No data for task '{task}': '{name}' cannot be fetched "
            f"({(str(error) or type(error).__name__).splitlines()[0][:160]})."
        ) from error
    splits = {"train": "train"} if "train" in available else {}
    dev = next((other for other in DEV if other in available), None)
    splits |= {"dev": dev} if dev else {}
    if not splits:
        raise NotFoundError(f"'{name}' has no train or dev split; it has {', '.join(available)}.")
    return splits


def columns(
    rows: Dataset, names: Sequence[str], where: str, *, nested: bool = False
) -> dict[str, list[Any]]:
    """The named columns as text; class numbers become their names, nested columns are `a.b`.

    Lists are text as well, unless values may be `nested`.
    """
    from datasets import ClassLabel

    flat = rows.flatten()
    table: dict[str, list[Any]] = {}
    for name in names:
        if name not in flat.column_names:
            says = f"'{where}' has no column '{name}'"
            raise unknown(says, name, flat.column_names, has="It has")
        feature = flat.features[name]
        values = flat[name]
        if isinstance(feature, ClassLabel):
            table[name] = [str(feature.int2str(value)) for value in values]
        else:
            table[name] = [
                value if nested and isinstance(value, list) else "" if value is None else str(value)
                for value in values
            ]
    return table
