"""Files that libraries read for the command line: .npz by `zipfile`, .parquet by pyarrow, which can end the process.

An input is the bytes of a file, as in `files`. Either a file is refused with an error of this package that names it, or
what is read of it, whole and some rows at a time, is what NumPy and pyarrow read, and so is what is written of that.
"""

from __future__ import annotations

import atexit
import io
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from numpy.lib.npyio import NpzFile

from dmlgpu.cli.npz_files import read_archive, stream_archive, write_archive
from dmlgpu.cli.parquet_files import open_blocks, read_table, table_bytes, whole_bytes, write_table
from dmlgpu.cli.stream import Task
from dmlgpu.cli.table import Column
from dmlgpu.cli.table_stream import stream_table
from dmlgpu.reference import same_bits

from .files import FOLDER, PIECES, data_of, files, headers, mutations, reading
from .target import Target

AS_IT_IS = Task(lambda array, axis: array, None, False, None, {})
MEMORY = 1 << 20


# .npz


def check_npz(line: str) -> None:
    data = data_of(line)
    found = reading("x.npz", data, read_archive)
    target = FOLDER / "y.npz"
    target.unlink(missing_ok=True)
    streamed = reading("x.npz", data, lambda path: stream_archive(path, target, lambda *_: None, AS_IT_IS, MEMORY))
    assert (found is None) == (streamed is None)
    assert (found is None) != target.exists()
    if found is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same_arrays(found.arrays, dict(NpzFile(io.BytesIO(data))))  # np.load wants the first member at the beginning
        same_arrays(found.arrays, read_archive(target).arrays)
        written = io.BytesIO()
        write_archive(written, found)
        same_arrays(found.arrays, dict(np.load(io.BytesIO(written.getvalue()), allow_pickle=False)))


def same_arrays(found: Any, wanted: Any) -> None:
    assert list(found) == list(wanted)
    for name, array in found.items():
        assert (array.shape, array.dtype) == (wanted[name].shape, wanted[name].dtype)
        assert array.tobytes() == wanted[name].tobytes()


ZIP_PIECES = [
    *(b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"PK\x07\x08", b"BZh9", b".npy", b"/"),
    *(b"\x08\x00", b"\x0c\x00", b"\x0e\x00", b"\x00\x00", b"\x01\x00", b"\xff\xff\xff\xff", b"\x00\x08", b"\x2d\x00"),
    *PIECES,
]


@st.composite
def archives(draw: st.DrawFn) -> bytes:
    """Draw an archive of a few files, most of which are arrays."""
    made = io.BytesIO()
    names = st.sampled_from(["a.npy", "b.npy", "a", ".npy", "\u00fc.npy", "../a.npy", "c/", "a\nb.npy"])
    kinds = st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    with zipfile.ZipFile(made, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are there twice
        for name in draw(st.lists(names, max_size=3)):
            archive.writestr(name, draw(headers()), draw(kinds))
    return draw(st.sampled_from([b"", b"", b"", b"before"])) + made.getvalue()


# .parquet


def check_parquet(line: str) -> None:
    """Check a file in another process first: an assertion can say that it ended, and nothing that it did."""
    said = apart().ask(line)
    assert said == "done", f"another process, which checked the file, {said}"
    check_parquet_here(line)


def check_parquet_here(line: str) -> None:
    data = data_of(line)
    table = reading("x.parquet", data, read_table)
    size = reading("x.parquet", data, table_bytes)
    wide = reading("x.parquet", data, whole_bytes)
    streamed = None
    target = FOLDER / "y.parquet"
    target.unlink(missing_ok=True)
    if size is not None:
        streamed = reading(
            "x.parquet", data, lambda path: stream_table(open_blocks(path, MEMORY, None, None), target, AS_IT_IS)
        )
        assert (table is None) == (streamed is None)
    if table is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = pq.ParquetFile(FOLDER / "x.parquet").read()
    same_columns(table.columns, wanted)
    written = io.BytesIO()
    write_table(written, table)
    same_columns(table.columns, pq.ParquetFile(io.BytesIO(written.getvalue())).read())
    if size is None or wide is None:
        return  # what pyarrow reads without a look at its directory
    assert 0 <= size <= wide
    same_columns(table.columns, pq.ParquetFile(target).read())


def same_columns(columns: Sequence[Column], wanted: Any) -> None:
    assert [column.name for column in columns] == wanted.column_names
    for column, cells in zip(columns, wanted.columns, strict=True):
        if column.numbers is None:
            assert plain(column.cells).equals(plain(cells))
        else:
            assert same_bits(column.numbers, cells.to_numpy())


def plain(cells: Any) -> Any:
    """Return cells without a dictionary, which may be another one where they were written once more."""
    return cells.cast(cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells


class Apart:
    """Another process that checks files."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        atexit.register(self.end)

    def ask(self, line: str) -> str:
        """Return what it says of a file: "done", an error, or how it ended."""
        if self._process is None:
            command = [sys.executable, "-m", "tests.fuzz.archives"]
            self._process = subprocess.Popen(
                command, cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline().strip()
        if not said:
            said = f"ended with the status {self._process.wait()}"
            self.end()
        return said

    def end(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


apart = cache(Apart)


def main() -> None:
    """Check each line of standard input."""
    with suppress(ImportError):  # on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        try:
            check_parquet_here(line.rstrip("\n"))
            print("done", flush=True)
        except Exception as error:
            print(f"said {error!r}", flush=True)


CELLS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "x": (pa.float64(), [0.0, -0.0, 1.5, float("nan"), float("inf"), 1e300]),
    "f": (pa.float32(), [0.0, 1.5, float("nan")]),
    "h": (pa.float16(), [0.0, 1.5]),
    "i": (pa.int64(), [0, -1, 2**63 - 1]),
    "u": (pa.uint64(), [0, 2**64 - 1]),
    "b": (pa.int8(), [0, -128]),
    "flag": (pa.bool_(), [True, False]),
    "text": (pa.string(), ["", "a", "\u00fc" * 20]),
    "bytes": (pa.binary(), [b"", b"\xff"]),
    "code": (pa.dictionary(pa.int32(), pa.string()), ["a", "b"]),
    "day": (pa.date32(), [0, 20_000]),
    "when": (pa.timestamp("us", "UTC"), [0, 2**40]),
    "many": (pa.list_(pa.int32()), [[], [1, 2]]),
    "parts": (pa.struct([("p", pa.int16()), ("q", pa.string())]), [{"p": 1, "q": "a"}, {"p": 2, "q": None}]),
    "nothing": (pa.null(), [None]),
}
"""Types of columns, and some of their cells."""
PARQUET_PIECES = [
    *(b"PAR1", b"PARE", b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff\xff\xff\xff\x0f", b"\x15\x00", b"\x15\x02"),
    *(b"\x80\x80\x80\x80\x10", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x19\x1c", b"\x18\x04", b"\x16", b"\x26"),
]


@st.composite
def parquets(draw: st.DrawFn) -> bytes:
    """Draw a table, and how it is written; perhaps it is then changed."""
    names = draw(st.lists(st.sampled_from(list(CELLS)), min_size=1, max_size=3))
    rows = draw(st.integers(0, 5))
    gaps = draw(st.integers(0, 3)) == 0
    columns = []
    for name in names:
        kind, pool = CELLS[name]
        cells = st.sampled_from(pool if not gaps else [*pool, None])
        columns.append(pa.array(draw(st.lists(cells, min_size=rows, max_size=rows)), kind))
    said = draw(st.sampled_from([None, None, {"pandas": '{"index_columns": ["i"]}'}, {"pandas": "{"}]))
    table = pa.Table.from_arrays(columns, names).replace_schema_metadata(said)
    made = io.BytesIO()
    pq.write_table(
        table,
        made,
        row_group_size=draw(st.sampled_from([1, 2, 100])),
        compression=draw(st.sampled_from(["none", "none", "snappy", "gzip", "zstd", "lz4", "brotli"])),
        use_dictionary=draw(st.booleans()),
        data_page_version=draw(st.sampled_from(["1.0", "2.0"])),
        write_page_checksum=draw(st.booleans()),
        write_page_index=draw(st.booleans()),
        store_schema=draw(st.booleans()),
        write_statistics=draw(st.booleans()),
    )
    data = made.getvalue()
    return draw(mutations(data, PARQUET_PIECES)) if draw(st.booleans()) else data


def _target(name: str, fresh: Callable[[], Any], pieces: list[bytes], check: Callable[[str], None], *of: str) -> Target:
    return Target(name, files(lambda corpus: fresh(), pieces), check, of, drawn=250)


NPZ = _target("npz", archives, ZIP_PIECES, check_npz, "cli/npz_files", "cli/npy_files")
PARQUET = _target("parquet", parquets, PARQUET_PIECES, check_parquet, "cli/parquet_files", "cli/table_stream")

if __name__ == "__main__":
    main()
