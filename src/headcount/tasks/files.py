"""Tables from files: CSV, TSV, JSON lines, Parquet, and GLUE's unquoted TSV; all as columns.

Every way a file can be wrong is said in one sentence with what was expected and what is there.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headcount.base.arrays import PACKED
from headcount.base.errors import HeadcountError, NotFoundError, UsageError
from headcount.base.files import LARGEST, parse_json
from headcount.base.names import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

Table = dict[str, list[str]]
JSON = (".jsonl", ".json")
SUFFIXES = (".tsv", ".csv", ".jsonl", ".json", ".parquet")
ONE_VALUE = ", and a text or a label is one value: write it as a column of its own."
ROWS = 2**14
"""Rows of a Parquet file that are read at once."""


def read_table(path: Path, columns: Sequence[str], *, nested: bool = False) -> Table:
    """The named columns of a CSV, TSV, JSON-lines or Parquet file, as text.

    Lists are refused, or, where values may be `nested`, as they are.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            f"'{path}' is not a table headcount can read. Known: {', '.join(SUFFIXES)}."
        )
    _must_exist(path)
    if suffix == ".parquet":
        table = _parquet(path, columns, nested)
    elif suffix in JSON:
        table = _json_lines(path, columns, nested)
    else:
        quoting = csv.QUOTE_MINIMAL if suffix == ".csv" else csv.QUOTE_NONE
        table = read_delimited(path, columns, "," if suffix == ".csv" else "\t", quoting=quoting)
    if not next(iter(table.values())):
        raise NotFoundError(f"'{path}' has no rows.")
    return table


def check_columns(path: Path, columns: Sequence[str]) -> None:
    """Refuse a table without these columns by its beginning, in `read_table`'s words.

    What is wrong with the rest of it is for those who read it all.
    """
    _must_exist(path)
    if (names := column_names(path)) is not None:
        _must_have(columns, names, path)


def column_names(path: Path) -> list[str] | None:
    """What the first line or the schema of a table says; None where it is no table."""
    try:
        return _names_in(path)
    except (OSError, ValueError, RecursionError, csv.Error):
        return None


def _names_in(path: Path) -> list[str] | None:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            return file.schema_arrow.names
    with path.open(encoding="utf-8-sig", newline="") as file:
        if suffix == ".csv":
            return next(csv.reader(file), [])
        if suffix == ".tsv":
            return next(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE), [])
        row = json.loads(file.readline(LARGEST)) if suffix in SUFFIXES else None
        return list(row) if isinstance(row, dict) else None


def read_delimited(
    path: Path,
    columns: Sequence[str],
    delimiter: str = "\t",
    *,
    quoting: int = csv.QUOTE_NONE,
    header: Sequence[str] | None = None,
    skip_short: bool = False,
) -> Table:
    """Columns of a delimited file. `header` names the columns of a file that has no header line;
    `skip_short` leaves out rows that end early, of which QQP's official file has a few.
    """
    _must_exist(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(_readable(file, path), delimiter=delimiter, quoting=quoting)  # pyright: ignore[reportArgumentType]
            names = list(header) if header else next(lines, [])
            _must_have(columns, names, path)
            numbers = [names.index(column) for column in columns]
            rows = list(_rows(lines, names, path, first_line=1 if header else 2, skip=skip_short))
    except csv.Error as error:
        raise UsageError(f"'{path}' is not a table: {error}.") from error
    if not rows:
        raise NotFoundError(f"'{path}' has no rows.")
    return {column: [row[at] for row in rows] for column, at in zip(columns, numbers, strict=True)}


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, without their ends."""
    _must_exist(path)
    with path.open(encoding="utf-8-sig") as file:
        return [line.rstrip("\r\n") for line in _readable(file, path)]


def pick(folder: Path, stems: Sequence[str], suffixes: Sequence[str] = SUFFIXES) -> Path | None:
    """The first file of the folder with one of these stems and endings."""
    for stem in stems:
        for suffix in suffixes:
            if (path := folder / f"{stem}{suffix}").is_file():
                return path
    return None


def listing(folder: Path) -> str:
    """What is in a folder, in short, for an error message."""
    names = sorted(path.name for path in folder.iterdir())
    shown = ", ".join(names[:6]) or "nothing"
    return shown + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _must_exist(path: Path) -> None:
    if not path.is_file():
        raise NotFoundError(f"There is no file '{path}'.")
    if path.stat().st_size == 0:
        raise NotFoundError(f"'{path}' is empty.")


def _must_have(columns: Sequence[str], names: Sequence[str], path: Path) -> None:
    missing = [column for column in columns if column not in names]
    if not missing:
        return
    shown = ", ".join(name if len(name) <= 24 else name[:21] + "..." for name in names[:8])
    if len(missing) == len(columns) and not any(did_you_mean(m, names) for m in missing):
        raise UsageError(
            f"'{path}' has no header line with {', '.join(columns)}: its first line is {shown}."
        )
    raise UsageError(
        f"'{path}' has no column {', '.join(missing)}.{did_you_mean(missing[0], names)} "
        f"It has: {shown}."
    )


def _readable(file: Iterable[str], path: Path) -> Iterable[str]:
    try:
        yield from file
    except UnicodeDecodeError as error:
        raise UsageError(f"'{path}' is not UTF-8 text: {error.reason}.") from error
    except OSError as error:
        raise NotFoundError(f"Cannot read '{path}': {error.strerror or error}.") from error


def _rows(
    lines: Iterable[list[str]], names: list[str], path: Path, *, first_line: int, skip: bool
) -> Iterable[list[str]]:
    short: list[int] = []
    for number, row in enumerate(lines, start=first_line):
        if not row:
            continue
        if len(row) >= len(names):
            yield row
        else:
            short.append(number)
    if short and not skip:
        shown = ", ".join(map(str, short[:3])) + (" ..." if len(short) > 3 else "")
        raise UsageError(
            f"'{path}' has {len(short)} rows with fewer than its {len(names)} columns: row {shown}."
        )


def _json_lines(path: Path, columns: Sequence[str], nested: bool) -> Table:
    table: Table = {column: [] for column in columns}
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        row = parse_json(line, f"'{path}' line {number} is not JSON")
        if not isinstance(row, dict):
            raise UsageError(f"'{path}' line {number} is not a JSON object.")
        _must_have(columns, list(row), path)
        for column in columns:
            if isinstance(row[column], list | dict) and not nested:
                raise UsageError(f"'{path}' line {number} has a list in '{column}'{ONE_VALUE}")
            table[column].append(_text(row[column]))
    return table


def _parquet(path: Path, columns: Sequence[str], nested: bool) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table: Table = {column: [] for column in columns}
    most, size = max(LARGEST, PACKED * path.stat().st_size), 0
    too_large = f"'{path}' would unpack to more than {most:,} characters, too many for its size."
    try:
        with pq.ParquetFile(path) as file:
            about = file.metadata
            _must_have(columns, file.schema_arrow.names, path)
            fields = [file.schema_arrow.field(column) for column in columns]
            at_once = _rows_at_once(fields, path, nested)
            plain = [field.name for field in fields if not pa.types.is_nested(field.type)]
        # the metadata of a single column is not asked for: Arrow ends the process where it is
        # damaged (ColumnChunk is declared not to raise), while its readers raise
        if sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups)) > most:
            raise UsageError(too_large)
        with pq.ParquetFile(path, metadata=about, read_dictionary=plain) as file:
            for batch in file.iter_batches(at_once, columns=list(columns)):
                for column in columns:
                    texts = _column_texts(batch.column(column))
                    table[column] += texts
                    size += sum(map(len, texts))
                if size > most:
                    raise UsageError(too_large)
    except HeadcountError:
        raise
    except Exception as error:  # Arrow's, its C++ library's, and those of dates Python has not
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UsageError(f"'{path}' is not a Parquet file: {reason[:200]}.") from error
    return table


def _rows_at_once(fields: Sequence[pa.Field], path: Path, nested: bool) -> int:
    """Rows of a batch: few where each is wide; refuses columns whose values have parts."""
    import pyarrow as pa

    for field in fields:
        if pa.types.is_nested(field.type) and not nested:
            raise UsageError(
                f"'{path}' has a {field.type} in every row of '{field.name}'{ONE_VALUE}"
            )
    widest = max(f.type.byte_width if pa.types.is_fixed_size_binary(f.type) else 1 for f in fields)
    return max(1, min(ROWS, 2**26 // max(1, widest)))


def _column_texts(column: pa.Array) -> list[str]:
    """The values of a batch as text; one that the file has only once is made only once."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return [_text(value) for value in column.to_pylist()]
    indices: list[int | None] = column.indices.to_pylist()
    used = sorted({index for index in indices if index is not None})
    values = column.dictionary.take(pa.array(used, column.indices.type)).to_pylist()
    words = dict(zip(used, map(_text, values), strict=True))
    return [words[index] if index is not None else "" for index in indices]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | dict):
        return value  # pyright: ignore[reportReturnType]
    if isinstance(value, bytes):
        return value.decode("utf-8")  # as some writers leave their texts
    return "" if value is None else str(value)
