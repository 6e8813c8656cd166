"""Tables in .parquet files: which of their columns are numbers, and what is kept."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.parquet
from numpy.typing import NDArray

from ..errors import counted
from ..layout import ceil_div
from ..planning.windows import TILE
from .console import CommandError
from .raw_files import AT_ONCE, buffered, reading
from .table import Column, Dialect, Table, chosen_columns
from .table_stream import Blocks, Cells, Place, Sink, Writer

__all__ = ["open_blocks", "read_table", "table_bytes", "whole_bytes", "write_table"]

_NONZERO = re.compile(r"[^eE]*[1-9]")
"""What numbers begin with that are not 0, however small they are."""
_BUFFER_BYTES = 1 << 16
"""Of a column of a row group that pyarrow reads at a time."""


def read_table(path: Path, only: Sequence[str] | None = None, missing: str | None = None) -> Table:
    """Read a .parquet file.

    Parameters
    ----------
    path : Path
        The file.
    only : sequence of str, optional
        The names of the columns to process; by default all of integers and floating-point numbers, without
        pandas' index. The others are kept as they are.
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
        content = b"".join(iter(lambda: file.read(AT_ONCE) or b"", b""))
    with _saying(path):
        file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(content), page_checksum_verification=True)
        table = file.read()
        names = list(table.column_names)
        _check_rows(file, table.num_rows)
    if not table.num_rows:
        raise CommandError(f"{path} has no rows")
    chosen = chosen_columns(path, names, only)
    columns = []
    taken = _numeric(path, table.schema, chosen, only is not None)
    for i, (name, cells) in enumerate(zip(names, table.columns, strict=True)):
        columns.append(Column(name, _numbers(path, name, cells, missing) if i in taken else cells))
    return Table(tuple(columns), header=True, dialect=Dialect(schema=table.schema))


def _numeric(path: Path, schema: Any, chosen: set[int], named: bool) -> list[int]:
    """Return the positions of the columns to process: of numbers, and what the user has named."""
    types, index = pyarrow.types, set() if named else _pandas_index(schema)
    found = [
        i
        for i in sorted(chosen)
        if named
        or ((types.is_integer(schema.types[i]) or types.is_floating(schema.types[i])) and schema.names[i] not in index)
    ]
    for i in found:
        kind = schema.types[i]
        if not any(is_one(kind) for is_one in (types.is_integer, types.is_floating, types.is_boolean)):
            raise CommandError(
                f"{path}, column {schema.names[i]}: its type is {kind}, not one of numbers; leave it out of --columns"
            )
    if not found:
        present = ", ".join(
            f"{name!r} of {kind}{', the index, which --columns may name' if name in index else ''}"
            for name, kind in zip(schema.names, schema.types, strict=True)
        )
        raise CommandError(f"{path} has no column of numbers; its columns are {present or 'none'}")
    return found


def _pandas_index(schema: Any) -> set[str]:
    """Return the names of the columns that are pandas' index, as it says in the file's metadata."""
    try:
        return {name for name in json.loads(schema.metadata[b"pandas"])["index_columns"] if isinstance(name, str)}
    except (TypeError, KeyError, ValueError, RecursionError):  # there is none, or it is not pandas' own
        return set()


def _numbers(path: Path, name: str, cells: Any, missing: str | None, first: int = 0) -> NDArray[Any]:
    """Return the numbers of a column, whose cells begin at row `first`."""
    if cells.null_count:
        if missing is None:
            row = first + pyarrow.compute.index(cells.is_null(), True).as_py()
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
            if (np.isinf(value) and "inf" not in missing.lower()) or (value == 0 and _NONZERO.match(missing)):
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


# Some rows at a time


_ROWS_AT_MOST = 1 << 20
"""Of a row group that is written."""
_SHARE = 64
"""Parts of the memory, of which a block of rows takes one: pyarrow's pages, numbers on host and device, results."""
_BLOCKS_IN_GROUP = 2
"""Blocks of which a row group that is written has the rows."""


_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 4}
"""Bytes of a cell in memory by its type in the file; of text those of its position."""
_GROUPS_LOOKED_INTO = 16
"""Row groups of which the dictionaries of text are read, to see how long the text is."""


def table_bytes(path: Path) -> int:
    """Return how many bytes the cells of a .parquet file take in memory, about.

    That is at least the width of each column's type times the rows, however few bytes they have in the file. Text that
    is encoded by dictionaries counts with the mean length of their entries, because the file does not say how often
    each of them is there.

    Raises
    ------
    CommandError, OSError
        If it cannot be read.
    """
    with _opened(path) as file:
        _check_groups(path, file)
        return sum(size for size, _ in _groups(path, file))


def whole_bytes(path: Path, only: Sequence[str] | None = None) -> int:
    """Return how many bytes it takes to read a .parquet file whole and compute it, about.

    Parameters
    ----------
    path : Path
        The file.
    only : sequence of str, optional
        The names of the columns to process, as for `read_table`.

    Raises
    ------
    CommandError, OSError
        If it cannot be read, or has no such columns.
    """
    with _opened(path) as file:
        _check_groups(path, file)
        schema, rows = file.schema_arrow, file.metadata.num_rows
        size = os.stat(path).st_size + sum(size for size, _ in _groups(path, file))
        for i in _numeric(path, schema, chosen_columns(path, schema.names, only), only is not None):
            dtype = np.dtype(schema.types[i].to_pandas_dtype())
            result = dtype.itemsize if dtype.kind == "f" else 8
            # Beside the cells: side by side with the other columns, and on the device; results on both.
            size += rows * (2 * dtype.itemsize + 2 * result)
        return size


def _check_groups(path: Path, file: Any) -> None:
    """Raise CommandError if what the file says of a row group is damaged.

    pyarrow ends the process where it finds that out while it is asked for nothing but that. Where it reads cells it
    raises an exception, so one row of each row group is read.
    """
    with _saying(path):
        for group in range(file.metadata.num_row_groups):
            next(file.iter_batches(1, row_groups=[group], use_threads=False), None)
        _check_rows(file, sum(file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)))


def _check_rows(file: Any, found: int) -> None:
    """Raise ValueError if a file says that it has another number of rows than it was found to have."""
    if found != file.metadata.num_rows:
        raise ValueError(f"it says that it has {counted(file.metadata.num_rows, 'row')}, and has {found}")


def _groups(path: Path, file: Any) -> list[tuple[int, int]]:
    """Return how many bytes each row group takes in memory, about, and its rows, of a file that was checked."""
    metadata = file.metadata
    leaves = [metadata.schema.column(i) for i in range(metadata.num_columns)]
    widths = [_width(leaf) for leaf in leaves]
    lengths = _lengths(path, file, [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"])
    found = []
    for k in range(metadata.num_row_groups):
        group = metadata.row_group(k)
        size = 0
        for i, (leaf, width) in enumerate(zip(leaves, widths, strict=True)):
            column = group.column(i)
            length = lengths.get(leaf.path, 0) if column.has_dictionary_page else 0
            size += max(column.total_uncompressed_size, int(column.num_values * (width + length)))
        found.append((size, group.num_rows))
    return found


def _width(leaf: Any) -> int:
    """Return how many bytes a cell takes in memory at least."""
    if leaf.logical_type.type == "DECIMAL":
        return 16 if leaf.precision <= 38 else 32
    return _WIDTHS.get(leaf.physical_type) or int(leaf.length)


def _lengths(path: Path, file: Any, columns: Sequence[str]) -> dict[str, float]:
    """Return the mean lengths of the entries of text's dictionaries, the largest of those of some row groups."""
    coded_already = {field.name for field in file.schema_arrow if _is_coded(field.type)}
    columns = [column for column in columns if column not in coded_already]
    many = file.metadata.num_row_groups
    lengths: dict[str, float] = {}
    with _opened(path, columns) as coded:
        for column in columns:
            for group in range(0, many, max(1, ceil_div(many, _GROUPS_LOOKED_INTO))):
                with suppress(pyarrow.ArrowException, OSError):  # reading the cells says so
                    batch = next(coded.iter_batches(1, row_groups=[group], columns=[column], use_threads=False), None)
                    arrays = [] if batch is None else batch.columns  # a row group can have no rows
                    for entries in (entries for cells in arrays for entries in _dictionaries(cells)):
                        sizes = pyarrow.compute.binary_length(entries)
                        lengths[column] = max(lengths.get(column, 0), pyarrow.compute.mean(sizes).as_py() or 0)
    return lengths


def _is_coded(kind: Any) -> bool:
    """Whether pyarrow gives cells as numbers of a dictionary's entries, so that each entry is in memory once."""
    return bool(pyarrow.types.is_dictionary(kind))


def _dictionaries(cells: Any) -> Iterator[Any]:
    """Yield the dictionaries of an array, which may be of lists or structures."""
    if _is_coded(cells.type):
        yield cells.dictionary
    elif pyarrow.types.is_nested(cells.type):
        parts = cells.flatten()
        for part in parts if isinstance(parts, list) else [parts]:
            yield from _dictionaries(part)


@contextmanager
def _opened(path: Path, coded: Sequence[str] = ()) -> Iterator[Any]:
    """Open a .parquet file, of whose columns pyarrow reads a part at a time; `coded` ones as a dictionary's entries."""
    with reading(path) as raw, buffered(raw) as content:
        with _saying(path):
            file = pyarrow.parquet.ParquetFile(
                pyarrow.PythonFile(content, "r"),
                page_checksum_verification=True,
                pre_buffer=False,
                buffer_size=_BUFFER_BYTES,
                read_dictionary=list(coded),
            )
        yield file


@contextmanager
def _saying(path: Path) -> Iterator[None]:
    """Have errors of reading say that a file is damaged, or cannot be read."""
    try:
        yield
    except pyarrow.ArrowMemoryError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno:
            raise CommandError(f"cannot read {path}: {error.strerror}") from error
        raise CommandError(f"{path} is damaged, or not a Parquet file that pyarrow reads: {error}") from None


@contextmanager
def open_blocks(path: Path, memory: int, only: Sequence[str] | None, missing: str | None) -> Iterator[Blocks]:
    """Open a .parquet file to read some rows at a time, for so many bytes of memory; else as `read_table`.

    `table_bytes` has been asked before: it finds damage that pyarrow would end the process for here.
    """
    with _opened(path) as file:
        yield _ParquetBlocks(path, file, memory, only, missing)


class _ParquetBlocks:
    """A .parquet file whose columns of numbers are those that `read_table` finds."""

    def __init__(self, path: Path, file: Any, memory: int, only: Sequence[str] | None, missing: str | None) -> None:
        self.path, self.size = path, os.stat(path).st_size
        self._file, self._missing = file, missing
        self._schema = file.schema_arrow
        self.rows, self.columns = file.metadata.num_rows, len(self._schema.names)
        if not self.rows:
            raise CommandError(f"{path} has no rows")
        taken = _numeric(path, self._schema, chosen_columns(path, self._schema.names, only), only is not None)
        self.numbers: Mapping[int, np.dtype[Any]] = {
            i: np.dtype(self._schema.types[i].to_pandas_dtype()) for i in taken
        }
        groups = _groups(path, file)
        row_bytes = max(
            8 * self.columns,
            sum(size for size, _ in groups) // self.rows,
            # The rows of one group can be wider than those of the others; in a few, what is not cells weighs more.
            *(size // rows for size, rows in groups if rows >= TILE),
        )
        self._rows_at_once = max(1, min(_ROWS_AT_MOST // _BLOCKS_IN_GROUP, memory // _SHARE // row_bytes))

    def blocks(self, place: Place) -> Iterator[tuple[Place, Sequence[Cells]]]:
        """Yield rows, one block after the other, from the beginning."""
        first = 0
        batches = self._file.iter_batches(self._rows_at_once, use_threads=False)
        while True:
            with _saying(self.path):
                batch = next(batches, None)
                if batch is None:
                    _check_rows(self._file, first)
                    return
            columns: list[Cells] = [pyarrow.chunked_array([cells]) for cells in batch.columns]
            for i in self.numbers:
                columns[i] = _numbers(self.path, self._schema.names[i], columns[i], self._missing, first)
            yield Place(rows=first), columns
            first += batch.num_rows

    @contextmanager
    def writer(self, file: Sink, types: Mapping[int, np.dtype[Any]], *, head: bool, identity: bool) -> Iterator[Writer]:
        """Return what writes a table like this one, whose columns of numbers have other types."""
        fields = [
            field.with_type(pyarrow.from_numpy_dtype(types[i])) if i in types else _with_gaps(field, gaps=identity)
            for i, field in enumerate(self._schema)
        ]
        schema = pyarrow.schema(fields, self._schema.metadata)
        pending: list[Any] = []

        def flush() -> None:
            if pending:
                written.write_table(pyarrow.Table.from_batches(pending, schema), _ROWS_AT_MOST)
                pending.clear()

        def write(columns: Sequence[Cells]) -> None:
            arrays = [
                pyarrow.array(np.ascontiguousarray(cells)) if isinstance(cells, np.ndarray) else cells
                for cells in columns
            ]
            pending.extend(pyarrow.Table.from_arrays(arrays, schema=schema).to_batches())
            if sum(batch.num_rows for batch in pending) >= _BLOCKS_IN_GROUP * self._rows_at_once:
                flush()

        with pyarrow.parquet.ParquetWriter(pyarrow.PythonFile(file, "w"), schema, write_page_checksum=True) as written:
            yield write
            flush()


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
    old = table.dialect.schema
    if old is None:
        made = pyarrow.Table.from_arrays(arrays, [column.name for column in table.columns])
    else:
        fields = [
            field.with_type(cells.type) if column.numbers is not None else _with_gaps(field, gaps=cells.null_count > 0)
            for field, column, cells in zip(old, table.columns, arrays, strict=True)
        ]
        made = pyarrow.Table.from_arrays(arrays, schema=pyarrow.schema(fields, old.metadata))
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(made, sink, write_page_checksum=True)
    file.write(sink.getvalue())


def _with_gaps(field: Any, *, gaps: bool) -> Any:
    """Return what a column that is kept is like, which may be empty in the row that --include-initial adds."""
    return field.with_nullable(True) if gaps else field
