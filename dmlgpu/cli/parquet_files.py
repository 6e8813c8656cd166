"""Tables in .parquet files: which of their columns are numbers, and what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.parquet
from numpy.typing import NDArray

from .console import CommandError
from .files import reading
from .table import Column, Dialect, Table, chosen_columns

__all__ = ["read_table", "write_table"]

_AT_ONCE = 1 << 24


def read_table(path: Path, only: Sequence[str] | None = None, missing: str | None = None) -> Table:
    """Read a .parquet file.

    Parameters
    ----------
    path : Path
        The file.
    only : sequence of str, optional
        The names of the columns to process; by default all of integers and floating-point numbers. The others are kept
        as they are.
    missing : str, optional
        The number that empty cells (null) in columns to process stand for; by default they are errors.

    Raises
    ------
    CommandError
        If the file is no complete Parquet file, has no rows or no numbers, or a column to process has an empty cell or
        is not one of numbers.
    OSError
        If it cannot be opened.
    """
    with reading(path) as file:
        content = b"".join(iter(lambda: file.read(_AT_ONCE) or b"", b""))
    try:
        table = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(content), page_checksum_verification=True).read()
        names = list(table.column_names)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise CommandError(f"{path} is damaged, or not a Parquet file that pyarrow reads: {error}") from None
    if not table.num_rows:
        raise CommandError(f"{path} has no rows")
    chosen = chosen_columns(path, names, only)
    columns = []
    for i, (name, cells) in enumerate(zip(names, table.columns, strict=True)):
        numeric = pyarrow.types.is_integer(cells.type) or pyarrow.types.is_floating(cells.type)
        taken = i in chosen and (numeric or only is not None)
        columns.append(Column(name, _numbers(path, name, cells, missing) if taken else cells))
    made = Table(tuple(columns), header=True, dialect=Dialect(metadata=table.schema.metadata))
    if not made.numeric:
        types = ", ".join(f"{name!r} of {cells.type}" for name, cells in zip(names, table.columns, strict=True))
        raise CommandError(f"{path} has no column of numbers; its columns are {types or 'none'}")
    return made


def _numbers(path: Path, name: str, cells: Any, missing: str | None) -> NDArray[Any]:
    types = pyarrow.types
    if not any(is_one(cells.type) for is_one in (types.is_integer, types.is_floating, types.is_boolean)):
        raise CommandError(
            f"{path}, column {name}: its type is {cells.type}, not one of numbers; leave it out of --columns"
        )
    if cells.null_count:
        if missing is None:
            row = pyarrow.compute.index(cells.is_null(), True).as_py()
            raise CommandError(
                f"{path}, row {row + 1}, column {name}: the cell is empty (null); --missing nan carries the gap "
                "through a column of floating-point numbers, --missing 0 has 0 there, and --columns chooses"
            )
        cells = cells.fill_null(_value(path, name, cells.type, missing))
    return np.asarray(cells.to_numpy())


def _value(path: Path, name: str, kind: Any, missing: str) -> Any:
    """Return the number that stands for empty cells, in a column's type."""
    try:
        if pyarrow.types.is_floating(kind):
            with np.errstate(over="ignore"):
                value = np.dtype(kind.to_pandas_dtype()).type(missing)
            if np.isinf(value) and "inf" not in missing.lower():
                raise OverflowError
            return pyarrow.scalar(value, kind)
        if pyarrow.types.is_boolean(kind) and int(missing) not in (0, 1):
            raise OverflowError
        return pyarrow.scalar(int(missing), pyarrow.int64() if int(missing) < 0 else pyarrow.uint64()).cast(kind)
    except (ValueError, OverflowError):  # pyarrow's errors are ValueErrors
        raise CommandError(
            f"--missing {missing}: {path}, column {name} has the type {kind}, which has no such number; give another "
            "number, or leave the column out with --columns"
        ) from None


def write_table(file: IO[bytes], table: Table) -> None:
    """Write a table to an open file."""
    arrays = [
        pyarrow.array(column.cells, pyarrow.string())
        if isinstance(column.cells, list)
        else column.cells
        if column.numbers is None
        else pyarrow.array(np.ascontiguousarray(column.numbers))
        for column in table.columns
    ]
    made = pyarrow.Table.from_arrays(arrays, [column.name for column in table.columns])
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(made.replace_schema_metadata(table.dialect.metadata), sink, write_page_checksum=True)
    file.write(sink.getvalue())
