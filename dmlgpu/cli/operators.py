"""``dmlgpu cumsum``, ``cumprod`` and ``round``: read a file, run the operator, write or show the result."""

from __future__ import annotations

import csv
import os
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..dtypes import ELEMENT_TYPES
from ..errors import AxisError, counted
from ..layout import MAX_DIMENSIONS, resolve_axis
from ..planning.problem import MODES, OPERATORS, Operator, ScanOptions
from .console import CommandError, one_line, say
from .files import Format, check_output, input_format, output_format
from .npy_files import read_npy, write_npy
from .npz_files import Archive, archive_bytes, read_archive, stream_archive, write_archive
from .raw_files import STANDARD_INPUT, STANDARD_OUTPUT, standard_output
from .replacement import replacing
from .summary import describe, summarize
from .table import Table, array_table

if TYPE_CHECKING:
    from ..runtime.device import Device
    from .stream import Task

__all__ = ["add_arguments", "add_problem", "how", "problem_given", "run"]

_MEMORY = 1 << 30
"""Of a run, if --memory is not given."""
_LEAST_MEMORY = 1 << 20
"""A block of four tiles of the widest elements, with its results."""
_MOST_TIMES = 18
"""How often its bytes an array can need at most: twice one byte an element, and a result of eight."""
_TEXT_TIMES = 8
"""The same of a .csv file, about; cells of few characters take more."""
_UNITS = {"": 1, **{f"{prefix}B": 1000**n for n, prefix in enumerate("KMGT", 1)}}
_UNITS |= {f"{prefix}{end}": 1024**n for n, prefix in enumerate("KMGT", 1) for end in ("iB", "i", "")} | {"B": 1}

_SCAN_EXAMPLES = """\
The running {title} of the numbers in a file, along one axis.

examples:
  dmlgpu {name} rain.csv                    show a summary
  dmlgpu {name} rain.csv -o totals.csv      write the result
  dmlgpu {name} rain.csv --columns 'Jan, Feb' --missing 0 -o totals.csv
  dmlgpu {name} cube.npy --axis 1 --exclusive -o result.npy
  dmlgpu {name} big.npy --axis 0 -o result.npy --memory 4GiB --resume"""

_ROUND_EXAMPLES = """\
Round the floating-point numbers in a file to integers; their type stays the
same.

examples:
  dmlgpu round prices.csv                   show a summary
  dmlgpu round prices.csv -o rounded.csv    write the result
  dmlgpu round prices.csv --columns net --mode half_away -o rounded.csv
  dmlgpu round x.npy --mode toward_zero -o whole.npy"""

_FILES = """\
.npy files:
  Arrays of up to 8 dimensions of integers or floating-point numbers; the shape
  and the order (C or Fortran) are kept. Python objects are never loaded.
  With -o and a .npy file, an array that may not fit into --memory is read,
  computed and written block by block, with the same bits. What is done is
  recorded every few seconds: --resume goes on after a kill.
  - is a .npy file on standard input or output:
    ssh far cat big.npy | dmlgpu cumsum - --axis 0 -o totals.npy

.npz files:
  Each array is processed on its own; --axis counts for all of them.

.csv files:
  UTF-8, separated by commas, semicolons or tabs, whichever the first line has
  most of. {rows}
  A column is numeric if all its cells are numbers: int64 (uint64 where that is
  too small) if all are written as integers, else float64. Other columns, such
  as dates and names, are kept as they are. A word or an empty cell in a column
  of numbers is an error that names its line; nan is a number. Results are
  written with the fewest digits that read back to the same bits.
  --missing VALUE takes empty cells for a number.
  Nothing is changed silently: an integer beside decimals that has no exact
  float64 and a number beyond float64 are errors. Codes such as 01234 are text,
  and numbers only if --columns names them. -0 is 0 among integers.

.parquet files:
  Each column of integers or floating-point numbers is processed in its own
  type, as those of .csv files are; --columns chooses. Other columns are kept
  as they are, and so is the index of a pandas.DataFrame, unless --columns names
  it. An empty cell (null) in a column to process is an error, or the number
  that --missing gives.

  .csv and .parquet files need the extra 'cli' of dmlgpu, which brings pyarrow:
  python -m pip install 'dmlgpu[cli]'

  With -o, the arrays of a large .npz file, and large tables down their rows
  into tables of the same format, go block by block like .npy files; --resume
  takes .npy and .csv files. Others are read whole, and refused if --memory is
  given and what they take with their results, about, is more. A large .csv file
  is read twice, first for its columns' types.

output files:
  A result is written beside its place, flushed to the disk and then renamed:
  the place has the old file or the new one, whatever happens. Owner and
  permissions stay. A symbolic link is followed to a file with the same
  extension. A file with several names (hard links) or of a user whose files
  this one cannot make is an error."""

_SCAN_ROWS = """Each column of numbers is processed down its rows;
  --axis 1 processes each row across its columns of numbers."""
_ROUND_ROWS = """Each column of numbers is rounded; integers stay as
  they are."""

_OPTIONS = ("command", "axis", "exclusive", "reverse", "include_initial", "dtype", "precision", "monotone", "mode")
"""The options on which a result depends."""
_TABLE_OPTIONS = ("columns", "header", "missing")
"""Those on which a result of a .csv file depends, too."""

Result = NDArray[Any] | Table | Archive
_Compute = Callable[[NDArray[Any], int | None], NDArray[Any]]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``cumsum``, ``cumprod`` or ``round``, whichever the parser's program ends with."""
    name = parser.prog.rpartition(" ")[2]
    _add_files(parser)
    if name == "round":
        _add_rounding(parser)
    else:
        _add_scan(parser, name)
    if name == "cumsum":
        parser.add_argument(
            "--precision",
            choices=("default", "compensated"),
            default="default",
            help="compensated: carry what rounding cuts off along; only for float32 results",
        )
        parser.add_argument(
            "--monotone",
            action="store_true",
            help="have the largest sum so far as each result: sums of numbers that are not negative then never "
            "decrease, which rounding can make them do",
        )
    _add_table(parser)


def _add_files(parser: ArgumentParser) -> None:
    parser.add_argument(
        "input", metavar="INPUT", help="a .npy, .npz, .csv or .parquet file; - is a .npy file on standard input"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUTPUT",
        help="write the result to this .npy, .csv or .parquet file (tables: 1 or 2 dimensions; .npz for .npz), perhaps "
        "the input; an existing file is replaced once the result is complete; - is a .npy file on standard output; by "
        "default a summary is printed",
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        type=_size_of,
        help="memory to take for the data, such as 500MB or 4GiB; larger files go block by block, 1GiB by default",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with what an earlier run with the same options left when it was killed, and keep what is done if "
        "this one ends early; from the start if there is nothing",
    )


def _scan_operator(name: str) -> Operator:
    operator = OPERATORS[name]
    assert operator is not None
    return operator


def _add_scan(parser: ArgumentParser, name: str) -> None:
    operator = _scan_operator(name)
    title, initial = operator.value, operator.identity
    parser.description = _SCAN_EXAMPLES.format(title=title, name=name)
    parser.epilog = _FILES.format(rows=_SCAN_ROWS)
    parser.add_argument(
        "--axis",
        type=int,
        metavar="N",
        help="axis to run along, counted from 0, or from the end if negative; needed for .npy files of more than "
        "one dimension; 0 (down the rows) by default for tables",
    )
    parser.add_argument(
        "--exclusive",
        action="store_true",
        help=f"leave each element out of its own {title}: results begin with {initial}",
    )
    parser.add_argument(
        "--reverse", action="store_true", help="start from the highest index of the axis and run to the lowest"
    )
    parser.add_argument(
        "--include-initial",
        action="store_true",
        help=f"also give the {initial} that the {title} starts from: the axis becomes one longer",
    )
    parser.add_argument(
        "--dtype",
        metavar="T",
        choices=[element.name for element in ELEMENT_TYPES],
        help="convert to this type, then compute in it: %(choices)s; by default floating-point numbers keep "
        "their type, signed integers become int64 and unsigned ones uint64",
    )


def _add_rounding(parser: ArgumentParser) -> None:
    parser.description = _ROUND_EXAMPLES
    parser.epilog = _FILES.format(rows=_ROUND_ROWS)
    _add_mode(parser)
    parser.add_argument(
        "--dtype",
        metavar="T",
        choices=[element.name for element in ELEMENT_TYPES if element.kind == "float"],
        help="convert to this floating-point type first: %(choices)s",
    )


def _add_mode(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--mode",
        type=lambda text: text.replace("-", "_"),
        choices=tuple(MODES),
        default=next(iter(MODES)),
        metavar="M",
        help="half_even: to the nearest integer, halves to the even one (the default, as NumPy does); toward_zero: "
        "drop the fraction; half_away: to the nearest integer, halves away from zero",
    )


def _add_table(parser: ArgumentParser) -> None:
    table = parser.add_argument_group("options for tables")
    table.add_argument(
        "--columns",
        metavar="NAMES",
        type=_names,
        help="process only these columns, by their names separated by commas, perhaps with spaces (by their numbers "
        "from 1 if there is no header), and keep the others as they are",
    )
    table.add_argument(
        "--header",
        choices=("auto", "yes", "no"),
        default="auto",
        help="whether the first line of a .csv file is a header; auto, the default, takes it for one if no cell of it "
        "is a number, and, with a note, if its numbers are names such as 2019: where a word in it stands above numbers "
        "alone, or where they are rising years above other numbers",
    )
    table.add_argument(
        "--missing",
        metavar="VALUE",
        type=_missing,
        help="take empty cells in columns of numbers for this number: 0, or nan to carry the gap through; without it "
        "they are errors",
    )


def _size_of(text: str) -> int:
    """Read an amount of memory."""
    found = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,3})?) ?([A-Za-z]*)", text)
    units = {name.lower(): factor for name, factor in _UNITS.items()}
    if found is None or found[2].lower() not in units:
        raise ArgumentTypeError(f"{text!r} is no amount of memory, such as 500MB or 4GiB")
    size = int(float(found[1]) * units[found[2].lower()])
    if size < _LEAST_MEMORY:
        raise ArgumentTypeError(f"{text!r} is {counted(size, 'byte')}, and 1MiB is the least")
    return size


def _names(text: str) -> list[str]:
    """Split names at commas and the spaces behind them; a name with a comma may be quoted as in a .csv file."""
    try:
        names = next(csv.reader([text], strict=True, skipinitialspace=True), [])
    except csv.Error as error:
        raise ArgumentTypeError(f"{text!r} is no line of a .csv file: {error}") from None
    if not names:
        raise ArgumentTypeError(f"{text!r} names no column: give at least one, or leave --columns out")
    return names


def _missing(text: str) -> str:
    try:
        if text.isascii() and "_" not in text:
            float(text)
            return text.strip()
    except ValueError:
        pass
    raise ArgumentTypeError(f"{text!r} is not a number; give the one that empty cells stand for, such as 0 or nan")


def run(arguments: Namespace) -> int:
    """Run ``cumsum``, ``cumprod`` or ``round`` and return the exit status."""
    if "" in (arguments.input, arguments.output):  # which is a folder to Path
        raise CommandError(f"{'-o' if arguments.input else 'INPUT'} is empty: give the name of a file")
    source = STANDARD_INPUT if arguments.input == "-" else Path(arguments.input)
    target = None
    if arguments.output is not None:
        target = STANDARD_OUTPUT if arguments.output == "-" else Path(arguments.output)
    kind = input_format(source)
    written = kind if target is None else check_output(target)
    _check_files(source, kind, target, written, arguments)
    axis = getattr(arguments, "axis", None)
    done = how(arguments.command, 0 if axis is None and kind != "npy" else axis, vars(arguments))
    name = one_line(source)
    if target is not None and kind == written and _is_large(source, target, kind, arguments):
        said, device = _run_blocks(source, kind, target, arguments)
    else:
        result, device = _run_whole(source, kind, target, arguments)
        if target is None:
            say(summarize(f"{done} of {name}", result, device.summary))
            return 0
        said = describe(result)
        if isinstance(result, Table) and written == "npy":
            left_out = [one_line(column.name) for column in result.columns if column.numbers is None]
            result = result.stacked(f"cannot write {target}", "write .csv or .parquet, or choose a type with --dtype")
            said = describe(result)
            if left_out:
                said += f", without column{'' if len(left_out) == 1 else 's'} {', '.join(left_out)}"
        _write(target, result)
    if target is not STANDARD_OUTPUT:
        say(f"wrote {one_line(target)}: {done} of {name}, {said}, on {device.summary}")
    return 0


def _check_files(source: Path, kind: Format, target: Path | None, written: Format, arguments: Namespace) -> None:
    """Refuse formats that do not go together, and find what reads and writes them."""
    if kind == "parquet" and (arguments.memory or _MOST_TIMES * os.stat(source).st_size > _MEMORY):
        # Which pyarrow reads when it is imported: its other allocators keep tens of MB that nobody uses any more.
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    for table_kind in {kind, written} - {"npy", "npz"}:
        _table_files(table_kind)
    if (kind == "npz") != (written == "npz"):
        raise CommandError(
            f"{source} and {target}: the arrays of a .npz file go into another .npz file, and only they; give -o a "
            f"name with {'.npz' if kind == 'npz' else '.npy'}"
        )
    whole = _why_whole(kind, target, written, arguments)
    if whole and arguments.memory is not None:
        needed = _table_files(kind).whole_bytes(source, arguments.columns)
        if needed > arguments.memory:
            raise CommandError(
                f"{source} takes about {needed} bytes with its result, is read whole {whole}, and --memory allows "
                f"{arguments.memory}: allow more, or {_by_blocks(kind, arguments)}"
            )
    if not arguments.resume:
        return
    unnamed = source is STANDARD_INPUT or target is STANDARD_OUTPUT or target is None
    if unnamed or kind != written or kind not in ("npy", "csv"):
        raise CommandError(
            "--resume goes on with a .npy or .csv file that is made of another one: give both by their names; .npz and "
            ".parquet files end in a directory of what they hold, without which no part of them can be read"
        )
    if whole:
        raise CommandError(f"--resume goes on with what is made block by block, and {source} is read whole {whole}")


def _why_whole(kind: Format, target: Path | None, written: Format, arguments: Namespace) -> str:
    """Say why a file cannot go block by block; nothing where it can, or has an error of its own for that."""
    if kind in ("npy", "npz"):
        return ""
    if target is None:
        return "for a summary"
    if kind != written:
        return f"on its way to another format, .{written}"
    if getattr(arguments, "reverse", False):
        return "with --reverse, because its rows are found only one after the other"
    if _table_axis(arguments) == 1:
        return "along axis 1"
    return ""


def _by_blocks(kind: Format, arguments: Namespace) -> str:
    """Say how a table that is read whole could go block by block."""
    if _why_whole(kind, Path(), kind, arguments):
        return "save its numbers as .npy with the program that made it: .npy files go block by block"
    return f"give -o with a .{kind} file, into which it goes block by block"


def _is_large(source: Path, target: Path, kind: Format, arguments: Namespace) -> bool:
    """Whether an input may not fit into memory, or is to be resumed, and can go block by block."""
    if source is STANDARD_INPUT or target is STANDARD_OUTPUT or arguments.resume:
        return True
    if _why_whole(kind, source, kind, arguments):
        return False
    memory, size = arguments.memory or _MEMORY, os.stat(source).st_size
    if kind == "csv":
        return max(_TEXT_TIMES * size, int(_table_files(kind).whole_bytes(source))) > memory
    if kind == "npz":
        size = archive_bytes(source)
    if kind == "parquet":
        size = max(size, _table_files(kind).table_bytes(source))
    return _MOST_TIMES * size > memory


def _run_whole(source: Path, kind: Format, target: Path | None, arguments: Namespace) -> tuple[Result, Device]:
    if kind == "npy":
        return _run_array(source, target, arguments)
    if kind == "npz":
        return _run_archive(source, arguments)
    return _run_table(source, kind, arguments)


def _run_blocks(source: Path, kind: Format, target: Path, arguments: Namespace) -> tuple[str, Device]:
    """Compute a file block by block; return what the result is."""
    memory = arguments.memory or _MEMORY
    if kind in ("csv", "parquet"):
        from .table_stream import stream_table, stream_text

        table = _table_files(kind).open_blocks(source, memory, *_reading_options(source, kind, arguments))
        task, device = _task(arguments, *_TABLE_OPTIONS)
        if kind == "csv":
            return stream_text(table, target, task, arguments.resume), device
        return stream_table(table, target, task), device
    _refuse_table_options(source, arguments)
    from .stream import stream

    task, device = _task(arguments)
    if kind == "npz":
        along = partial(_axis, arguments=arguments)
        return stream_archive(source, target, along, task, memory), device
    return stream(source, target, partial(_axis, source, arguments=arguments), task, memory, arguments.resume), device


def _task(arguments: Namespace, *more: str) -> tuple[Task, Device]:
    """Return what becomes of an array in blocks, and the device it runs on; results depend on more options, too."""
    from ..arrays.pieces import Scan
    from .stream import Task

    compute, device = _operator(arguments)
    scans = arguments.command != "round"
    options = {name: getattr(arguments, name, None) for name in (*_OPTIONS, *more)}

    def scan(state: bytes | None) -> Scan:
        if state is not None:
            return Scan.resume(state, device=device)
        operator: Literal["sum", "product"] = "sum" if arguments.command == "cumsum" else "product"
        return Scan(operator, axis=1, dtype=arguments.dtype, device=device, **_scan_options(arguments))

    initial = _scan_operator(arguments.command).identity if getattr(arguments, "include_initial", False) else None
    task = Task(
        compute,
        scan if scans else None,
        scans and arguments.reverse,
        initial,
        options | {"subnormals": dict(device.subnormals()) if scans else None},
    )
    return task, device


def _run_array(source: Path, target: Path | None, arguments: Namespace) -> tuple[NDArray[Any], Device]:
    _refuse_table_options(source, arguments)
    array = read_npy(source, arguments.memory)
    axis = _axis(source, array.shape, array.dtype, arguments)
    if target is not None and output_format(target) != "npy" and array.ndim not in (1, 2):
        raise CommandError(
            f"cannot write {target}: a {target.suffix} file has 1 or 2 dimensions while {source} has {array.ndim}; "
            "write .npy"
        )
    compute, device = _operator(arguments)
    return _in_order(compute, array, axis), device


def _run_archive(source: Path, arguments: Namespace) -> tuple[Archive, Device]:
    _refuse_table_options(source, arguments)
    archive = read_archive(source, arguments.memory)
    axes = {name: _axis(source / name, array.shape, array.dtype, arguments) for name, array in archive.arrays.items()}
    compute, device = _operator(arguments)
    results = {name: _in_order(compute, array, axes[name]) for name, array in archive.arrays.items()}
    return replace(archive, arrays=results), device


def _refuse_table_options(source: Path, arguments: Namespace) -> None:
    if arguments.columns is not None or arguments.header != "auto" or arguments.missing is not None:
        raise CommandError(
            "--columns and --missing are for .csv and .parquet files, and --header for .csv files; "
            f"{source} is an array"
        )


def _axis(source: Path, shape: tuple[int, ...], dtype: np.dtype[Any], arguments: Namespace) -> int | None:
    """Return the axis to run along, counted from the start; None for rounding, which has none."""
    if arguments.command == "round":
        _check_roundable(source, dtype, arguments)
        return None
    if not shape:
        raise CommandError(f"{source} holds a single number, which has no axis to run along")
    if arguments.axis is None and len(shape) > 1:
        raise CommandError(
            f"{source} has shape {shape}; say along which axis to run, with --axis 0 to {len(shape) - 1}"
        )
    try:
        return resolve_axis(arguments.axis or 0, len(shape))
    except AxisError as error:
        raise CommandError(f"{source}: {error}") from None


def _check_roundable(name: object, dtype: np.dtype[Any], arguments: Namespace) -> None:
    if arguments.command == "round" and arguments.dtype is None and dtype.kind == "b":
        raise CommandError(
            f"{name} has dtype bool, which has nothing to round: convert it with --dtype, or leave it as it is"
        )


def _in_order(compute: _Compute, array: NDArray[Any], axis: int | None) -> NDArray[Any]:
    """Compute an array; the result has the order of its elements in memory, C or Fortran."""
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        return compute(array.T, None if axis is None else array.ndim - 1 - axis).T
    return compute(array, axis)


def _table_axis(arguments: Namespace) -> int:
    """Return the axis of a table to run along, counted from the start: 0 is down the rows."""
    axis = getattr(arguments, "axis", None) or 0
    if not -2 <= axis < 2:
        raise AxisError(axis, 2)
    return int(axis % 2)


def _reading_options(source: Path, kind: Format, arguments: Namespace) -> list[Any]:
    """Return what a table is read by besides its file, in the order of the arguments of what reads it."""
    options = [arguments.columns, arguments.missing]
    if kind == "csv":
        return [arguments.header, *options]
    if arguments.header != "auto":
        raise CommandError(f"--header is for .csv files; {source} says itself what its columns are called")
    return options


def _table_files(kind: Format) -> Any:
    """Return the module that reads and writes one kind of tables."""
    try:
        return import_module(f".{kind}_files", __package__)
    except ImportError as error:
        raise CommandError(
            f".{kind} files need the extra 'cli' of dmlgpu, which brings pyarrow ({error}): install it with "
            "python -m pip install 'dmlgpu[cli]'"
        ) from error


def _run_table(source: Path, kind: Format, arguments: Namespace) -> tuple[Table, Device]:
    table: Table = _table_files(kind).read_table(source, *_reading_options(source, kind, arguments))
    axis = _table_axis(arguments)
    longer = getattr(arguments, "include_initial", False)
    if axis == 1:
        if longer:
            raise CommandError(f"--include-initial along axis 1 would add a column without a name to {source}")
        matrix = table.stacked(f"{source}, along axis 1", "choose columns with --columns")
        compute, device = _operator(arguments)
        return table.with_numbers(compute(matrix, axis).T), device
    arrays = [column.numbers for column in table.columns if column.numbers is not None]
    compute, device = _operator(arguments)
    results: dict[int, NDArray[Any]] = {}
    for dtype in sorted({array.dtype for array in arrays}, key=str):
        same = [i for i, array in enumerate(arrays) if array.dtype == dtype]
        results.update(zip(same, compute(np.column_stack([arrays[i] for i in same]), 0).T, strict=True))
    if longer:
        table = table.with_gap(first=not arguments.reverse)
    return table.with_numbers(results[i] for i in range(len(arrays))), device


def _operator(arguments: Namespace) -> tuple[_Compute, Device]:
    """Return a function of an array and an axis, and the device it runs on."""
    from ..arrays.functions import cumulative_prod, cumulative_sum, round
    from ..runtime.device import resolve_device

    device = resolve_device(arguments.device)
    dtype = None if arguments.dtype is None else np.dtype(arguments.dtype)

    def compute(array: NDArray[Any], axis: int | None) -> NDArray[Any]:
        if arguments.command == "round":
            # Arrays have been looked at by their names; this is one of the columns.
            _check_roundable(f"{arguments.input}: a column that --columns names", array.dtype, arguments)
            return round(array if dtype is None else array.astype(dtype), mode=arguments.mode, device=device)
        scan = cumulative_sum if arguments.command == "cumsum" else cumulative_prod
        options = {"include_initial": arguments.include_initial, **_scan_options(arguments)}
        return scan(array, axis=axis, dtype=dtype, device=device, **options)

    return compute, device


def _scan_options(arguments: Namespace) -> dict[str, Any]:
    """Return the options of a scan that its command has, by the names that Python's functions give them."""
    return {name: value for name, value in vars(arguments).items() if name in ScanOptions._fields}


def _write(target: Path, result: Result) -> None:
    kind = output_format(target)
    opened: AbstractContextManager[Any] = standard_output() if target is STANDARD_OUTPUT else replacing(target)
    with opened as file:
        if isinstance(result, Archive):
            write_archive(file, result)
        elif kind != "npy":
            table = result if isinstance(result, Table) else array_table(result, f".{kind}")
            _table_files(kind).write_table(file, table)
        else:
            assert not isinstance(result, Table)
            write_npy(file, result)


def how(operator: str, axis: int | None, options: Mapping[str, Any]) -> str:
    """Say what an operator computes, as in 'reverse cumsum along axis 1'."""
    if operator == "round":
        return f"round ({options['mode']})"
    words = ["compensated"] if options.get("precision") == "compensated" else []
    words += [word for word in ("exclusive", "reverse", "monotone") if options.get(word)]
    return " ".join([*words, operator, *([] if axis is None else [f"along axis {axis}"])])


# An operator by its shape, for commands that plan it and run nothing


def add_problem(parser: ArgumentParser) -> None:
    """Add the arguments that say which operator a command plans; `problem_given` returns what they say."""
    parser.add_argument("operator", metavar="OPERATOR", choices=tuple(OPERATORS), help=", ".join(OPERATORS))
    parser.add_argument(
        "--shape",
        metavar="S",
        type=_shape,
        required=True,
        help="sizes with an x between, as in 4096x4096 or 16x2^20; elements lie in C order without gaps",
    )
    parser.add_argument("--axis", metavar="N", type=int, help="axis to run along; needed for more than one dimension")
    parser.add_argument(
        "--type",
        metavar="T",
        choices=[element.name for element in ELEMENT_TYPES],
        default="float32",
        help="the type to compute in: %(choices)s; %(default)s by default",
    )
    parser.add_argument("--exclusive", action="store_true", help="leave each element out of its own result")
    parser.add_argument("--reverse", action="store_true", help="start from the highest index of the axis")
    parser.add_argument("--precision", choices=("default", "compensated"), default="default", help="of sums of float32")
    parser.add_argument("--monotone", action="store_true", help="have the largest sum so far as each result")
    _add_mode(parser)
    parser.set_defaults(mode=None)  # so that one sees whether it is given
    parser.add_argument("--in-place", action="store_true", help="results take the places of elements")


def problem_given(arguments: Namespace) -> dict[str, Any]:
    """Return the arguments of `add_problem` by the names that `dmlgpu.explain` gives them."""
    names = ("operator", "shape", "axis", "exclusive", "reverse", "precision", "monotone", "in_place")
    if arguments.mode is not None and arguments.operator != "round":
        raise CommandError(f"--mode is for round, and {arguments.operator} rounds nothing to integers: leave it out")
    if arguments.operator != "round" and arguments.axis is None and 1 < len(arguments.shape) <= MAX_DIMENSIONS:
        last = len(arguments.shape) - 1
        raise CommandError(f"--axis is missing, and --shape has {last + 1} dimensions: give --axis 0 to {last}")
    mode = arguments.mode or next(iter(MODES))
    return {"dtype": arguments.type, "mode": mode, **{name: getattr(arguments, name) for name in names}}


def _shape(text: str) -> tuple[int, ...]:
    sizes = []
    for part in text.split("x"):
        match = re.fullmatch(r"(\d{1,40})(?:\^(\d{1,2}))?", part, re.ASCII)
        if match is None:
            raise ArgumentTypeError(f"{text!r} is no shape: write sizes with an x between, as in 4096x4096 or 16x2^20")
        sizes.append(int(match[1]) ** int(match[2] or 1))
    return tuple(sizes)
