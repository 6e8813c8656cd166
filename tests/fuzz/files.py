"""Files that somebody hands to the command line: .npy, .csv and JSON, made from a corpus by mutation.

An input is the bytes of a file, written as one line of text (`line_of`). Either a file is refused with an error of this
package, or what is read of it is right: as NumPy reads it, and as exact fractions say.
"""

from __future__ import annotations

import atexit
import csv
import io
import json
import math
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from dmlgpu.bench.comparison import compare as compare_reports
from dmlgpu.bench.comparison import render
from dmlgpu.bench.results import read_report
from dmlgpu.cli.csv_files import read_table, write_table
from dmlgpu.cli.npy_files import read_npy
from dmlgpu.cli.summary import summarize
from dmlgpu.cli.table import Table
from dmlgpu.conformance import Digests
from dmlgpu.errors import DmlGpuError

from .target import Target

FOLDER = Path(tempfile.mkdtemp(prefix="dmlgpu-fuzz-"))
atexit.register(shutil.rmtree, FOLDER)


def line_of(data: bytes) -> str:
    """Write bytes as a line of text."""
    return data.decode("latin-1").encode("unicode_escape").decode("ascii")


def data_of(line: str) -> bytes:
    """Return the bytes that a line stands for."""
    return line.encode("ascii").decode("unicode_escape").encode("latin-1")


def reading(name: str, data: bytes, read: Callable[[Path], Any]) -> Any:
    """Write a file and read it; None if it is refused, as it should be said."""
    path = FOLDER / name
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return read(path)
        except DmlGpuError as error:
            said = str(error)
    assert name in said, f"{said!r} does not name the file"
    return None


# .npy


def check_npy(line: str) -> None:
    data = data_of(line)
    found = reading("x.npy", data, read_npy)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except Exception:
        wanted = None
    if wanted is not None and (wanted.ndim > 8 or wanted.dtype.kind not in "biuf" or wanted.dtype.itemsize > 8):
        wanted = None
    if wanted is not None and wanted.dtype.kind == "b" and np.any(wanted.view(np.uint8) > 1):
        wanted = None
    assert (found is None) == (wanted is None), f"read {found!r}, and NumPy {wanted!r}"
    if found is not None:
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert found.tobytes() == wanted.tobytes()
        assert type(found) is np.ndarray
        summarize("x", found, "no device")


HEADERS = [
    *(
        b"'<f4'",
        b"'>i2'",
        b"'|b1'",
        b"'|O'",
        b"'<f8'",
        b"'<U3'",
        b"'|V9'",
        b"'f8,f8'",
        b"('<f4', (2,))",
        b"[('a', '<f4')]",
    ),
    *(
        b"True",
        b"False",
        b"None",
        b"1",
        b"'shape'",
        b"'descr'",
        b"'fortran_order'",
        b"'more'",
        b"{",
        b"}",
        b"(",
        b")",
        b",",
    ),
    *(b"(3,)", b"()", b"(-1,)", b"(0,)", b"(2, 3)", b"(0, 99999999999999999999)", b"(9223372036854775807,)", b"(3L,)"),
    *(b"((3,),)", b"3", b"(1.5,)", b"('a',)", b"(True,)", b"1" * 30, b"-" * 300, b"(" * 250, b"\n", b"\\", b"#", b"'"),
]
PIECES = [
    b"\x93NUMPY",
    b"\x01\x00",
    b"\x02\x00",
    b"\x03\x00",
    b"\xff\xff",
    b"\x00\x00\x00\x00",
    b"\x80",
    b"\x10",
    *HEADERS,
]


@st.composite
def headers(draw: st.DrawFn) -> bytes:
    """Draw a file with a header of the right length, and of nearly the right content."""
    kind = draw(st.sampled_from(["<f4", ">f8", "|u1", "<i8", "|b1", "<f2", ">u2"]))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=9)))
    fields = [f"'descr': '{kind}'", f"'fortran_order': {draw(st.booleans())}", f"'shape': {shape}"]
    text = f"{{{', '.join(draw(st.permutations(fields)))}, }}".encode()
    if draw(st.booleans()):
        text = draw(mutations(text, HEADERS))
    text += b" " * draw(st.integers(0, 20)) + b"\n"
    version = draw(st.sampled_from([1, 2, 3]))
    length = (len(text) % 2**16).to_bytes(2 if version == 1 else 4, "little")
    needed = int(np.prod(shape)) * int(kind[-1])
    body = draw(st.binary(min_size=needed, max_size=needed)) if needed < 200 else bytes(needed)
    if draw(st.integers(0, 3)) == 0:
        body = draw(st.sampled_from([body[:-1], body + b"\0", body[: len(body) // 2], body + body]))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + body


# .csv

NUMBER = re.compile(r"[ \t]*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[ \t]*")


def check_csv(line: str) -> None:
    data = data_of(line)
    for header in ("auto", "yes", "no"):
        table = reading("x.csv", data, lambda path, header=header: read_table(path, header))
        if table is not None:
            check_table(table, data)


def check_table(table: Table, data: bytes) -> None:
    """Compare each cell with what the file says, and with what is read of it once more after it was written."""
    text = data.decode("utf-8-sig")
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=table.dialect.delimiter) if row]
    if table.header:
        assert [column.name for column in table.columns] == rows.pop(0)
    assert table.rows == len(rows)
    for i, column in enumerate(table.columns):
        cells = [row[i] for row in rows]
        if column.numbers is None:
            assert column.cells.to_pylist() == cells
        else:
            for cell, value in zip(cells, column.numbers.tolist(), strict=True):
                assert is_right(cell, value), f"{cell[:100]!r} was read as {value!r}"
    summarize("x", table, "no device")
    written = io.BytesIO()
    write_table(written, table)
    again = reading("y.csv", written.getvalue(), lambda path: read_table(path, "yes" if table.header else "no"))
    assert again is not None, "what was written cannot be read"
    for column, other in zip(table.columns, again.columns, strict=True):
        assert column.name == other.name
        if column.numbers is None:
            assert column.cells.equals(other.cells)
        else:
            assert other.numbers is not None
            np.testing.assert_array_equal(column.numbers, other.numbers)
            zeros = column.numbers == 0
            np.testing.assert_array_equal(np.signbit(column.numbers[zeros]), np.signbit(other.numbers[zeros]))


def is_right(cell: str, value: float) -> bool:
    """Whether a value is what a cell says: exactly, or the nearest float64 if that has a point or an exponent."""
    found = NUMBER.fullmatch(cell)
    if found is None:
        word = cell.strip(" \t").lower().lstrip("+-")
        negative = cell.strip(" \t").startswith("-")
        if word == "nan":
            return math.isnan(value)
        return word in ("inf", "infinity") and value == (-math.inf if negative else math.inf)
    mantissa, _, exponent = found[1].lower().partition("e")
    whole, _, decimals = mantissa.lstrip("+-").partition(".")
    digits = (whole + decimals).lstrip("0") or "0"
    size = int(exponent.lstrip("+-").lstrip("0")[:9] or 0)
    power = (-size if exponent.startswith("-") else size) - len(decimals) + len(digits[4000:])
    if abs(power) > 5000:  # beyond all there is, unless it is zero
        return value == 0 and digits == "0"
    exact = int(digits[:4000]) * Fraction(10) ** power * (-1 if mantissa.startswith("-") else 1)  # what Python reads
    if "." not in cell and "e" not in cell.lower():
        return Fraction(value) == exact
    return math.isfinite(value) and value == float(exact) and (value != 0) == (exact != 0)


CELLS = [
    *(
        b"0",
        b"-0",
        b"+0",
        b"1",
        b"-1",
        b"00",
        b"01234",
        b"-007",
        b"1e0000000000308",
        b"-2e-0000000000300",
        b"1.5",
        b".5",
        b"5.",
        b".",
        b"1e5",
        b"1E-5",
        b"1e",
        b"e5",
    ),
    *(b"9007199254740993", b"9007199254740992", b"-9007199254740993", b"9223372036854775807", b"9223372036854775808"),
    *(b"-9223372036854775808", b"18446744073709551615", b"18446744073709551616", b"1" * 400, b"1" * 5000, b"0" * 5000),
    *(b"1e308", b"1.8e308", b"1e309", b"-1e999", b"1e-323", b"1e-324", b"0e999999999", b"1e99999999999", b"0.0e-999"),
    *(
        b"2.2250738585072011e-308",
        b"0.1000000000000000055511151231257827",
        b"nan",
        b"-NaN",
        b"inf",
        b"-Infinity",
        b"infinit",
    ),
    *(
        b"1_000",
        b"0x1F",
        b"\xd9\xa3",
        b"\xef\xbc\x91",
        b"\xc2\xa01",
        b" 2",
        b"\t3 ",
        b"",
        b" ",
        b"x",
        b"n/a",
        b"1\x00",
        b"\x1b[2J",
    ),
    *(
        b'"1"',
        b'"a,b"',
        b'"a;b"',
        b'"x\ny"',
        b'"',
        b'""',
        b'"a""b"',
        b"1 2",
        b"True",
        b"None",
        b"1,5",
        b"1e1.5",
        b"--1",
        b"+-1",
    ),
]
ENDS = [b"\n", b"\n", b"\n", b"\r\n", b"\r", b"", b"\n\n"]
CSV_PIECES = [*CELLS, *ENDS, b",", b";", b"\t", b"\xef\xbb\xbf", b"\xff", b"\x00"]


@st.composite
def tables(draw: st.DrawFn) -> bytes:
    """Draw a table whose columns have cells that have something to do with each other."""
    columns = draw(st.integers(1, 3))
    pools = [draw(st.lists(st.sampled_from(CELLS), min_size=1, max_size=3)) for _ in range(columns)]
    rows = [[draw(st.sampled_from(pool)) for pool in pools] for _ in range(draw(st.integers(1, 4)))]
    if draw(st.booleans()):
        rows.insert(0, [draw(st.sampled_from([b"a", b"b", b"a b", b'"a,b"', b"", b"1"])) for _ in pools])
    delimiter = draw(st.sampled_from([b",", b",", b";", b"\t"]))
    end = draw(st.sampled_from(ENDS))
    mark = draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"]))
    return mark + end.join([*(delimiter.join(row) for row in rows), b""])


# JSON


def check_json(line: str) -> None:
    data = data_of(line)
    digests = reading("x.json", data, Digests.read)
    if digests is not None:
        written = io.BytesIO()
        digests.write(written)
        assert reading("y.json", written.getvalue(), Digests.read) == digests
    report = reading("x.json", data, read_report)
    if report is not None:
        try:
            assert render(compare_reports(report, report))
        except DmlGpuError:
            return


VALUES = [
    *(
        b"0",
        b"-1",
        b"1.5",
        b"1e999",
        b"-0.0",
        b"NaN",
        b"Infinity",
        b"1" * 30,
        b"1" * 5000,
        b"true",
        b"null",
        b'""',
        b'"a"',
    ),
    *(
        b"[]",
        b"{}",
        b"[0]",
        b"[1e-9]",
        b"[[]]",
        b'["a"]',
        b'{"a": 1}',
        b"[" * 2000,
        b"[null]",
        b"[true]",
        b'"\\ud800"',
        b'"\\n"',
    ),
]
JSON_PIECES = [*VALUES, b",", b":", b"}", b"]", b'"', b"\xff"]


@st.composite
def documents(draw: st.DrawFn, corpus: list[bytes]) -> bytes:
    """Draw a document of the corpus in which a value somewhere is another."""
    content = json.loads(draw(st.sampled_from([one for one in corpus if is_json(one)])))
    place: Any = content
    for _ in range(draw(st.integers(0, 5))):
        inside = list(place) if isinstance(place, dict) else list(range(len(place)))
        inside = [key for key in inside if isinstance(place[key], dict | list) and place[key]]
        if not inside:
            break
        place = place[draw(st.sampled_from(inside))]
    keys = list(place) if isinstance(place, dict) else list(range(len(place)))
    key = draw(st.sampled_from(keys))
    if draw(st.integers(0, 5)) == 0:
        del place[key]
        return json.dumps(content).encode()
    place[key] = "what is to be replaced"
    return json.dumps(content).encode().replace(b'"what is to be replaced"', draw(st.sampled_from(VALUES)))


def is_json(data: bytes) -> bool:
    """Whether it is an object or a list with something in it."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict | list) and bool(content)


# Drawing


@st.composite
def mutations(draw: st.DrawFn, data: bytes, pieces: list[bytes]) -> bytes:
    """Draw changes of some bytes: others in their place, pieces put in, parts left out, doubled or cut off."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.sampled_from([0, 0, 1, 1, 2, 4, 8, 30, 100])))
        how = draw(st.integers(0, 9))
        if how == 0:
            data = data[:start]
        elif how == 1:
            data = data[:end] + data[start:end] * draw(st.integers(1, 3)) + data[end:]
        elif how < 5:
            data = data[:start] + draw(st.binary(max_size=4)) + data[end:]
        else:
            data = data[:start] + draw(st.sampled_from(pieces)) + data[end:]
    return data


def files(fresh: Callable[[list[bytes]], st.SearchStrategy[bytes]], pieces: list[bytes]) -> Any:
    """Return what draws files: new ones, and those of the corpus with changes, or with the end of another."""

    def inputs(corpus: list[str]) -> st.SearchStrategy[str]:
        kept = [data_of(line) for line in corpus]
        drawn = [fresh(kept), fresh(kept)]
        if kept:
            one = st.sampled_from(kept)
            drawn.append(one.flatmap(lambda data: mutations(data, pieces)))
            drawn.append(st.tuples(one, one, st.integers(0, 200)).map(lambda cut: cut[0][: cut[2]] + cut[1][cut[2] :]))
        return st.one_of(*drawn).map(lambda data: line_of(data) or "\\x00")

    return inputs


NPY = Target("npy", files(lambda corpus: headers(), PIECES), check_npy, ("cli/npy_files", "cli/raw_files"))
CSV = Target(
    "csv", files(lambda corpus: tables(), CSV_PIECES), check_csv, ("cli/csv_files", "cli/numerals", "cli/table")
)
JSON = Target(
    "json",
    files(lambda corpus: documents(corpus) if any(map(is_json, corpus)) else st.just(b"{}"), JSON_PIECES),
    check_json,
    ("conformance/digests", "bench/results", "bench/comparison"),
)
