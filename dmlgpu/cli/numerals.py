"""Numbers in cells of text: what is one, what it becomes, and how numbers are written."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from .console import CommandError

__all__ = [
    "CODE",
    "NUMBER",
    "Error",
    "Pattern",
    "are_codes",
    "are_exact",
    "floats_of",
    "has_number",
    "numbers_of",
    "of_missing",
    "other_than_number",
    "shown",
    "telling_places",
    "texts_of",
    "too_wide",
]

Error = Callable[[int, str], CommandError]
"""Makes an error of a cell's row and what is wrong with it."""


class Pattern:
    """A pattern of cells, for one cell and for columns."""

    def __init__(self, pattern: str) -> None:
        self._one = re.compile(pattern, re.IGNORECASE | re.ASCII)
        self._many = f"^(?:{pattern})$"

    def fits(self, cell: str) -> bool:
        """Return whether a cell fits."""
        return self._one.fullmatch(cell) is not None

    def fit(self, cells: Any) -> Any:
        """Return for each cell whether it fits."""
        return pyarrow.compute.match_substring_regex(cells, self._many, ignore_case=True)


_INTEGER = Pattern(r"[ \t]*[+-]?[0-9]+[ \t]*")
NUMBER = Pattern(r"[ \t]*[+-]?(?:[0-9]+\.?[0-9]*(?:e[+-]?[0-9]+)?|\.[0-9]+(?:e[+-]?[0-9]+)?|nan|inf|infinity)[ \t]*")
"""The texts that are numbers. Python reads more, such as 1_000 and the digits of all scripts."""
_WORD = Pattern(r"[+-]?(?:nan|inf|infinity)")
CODE = Pattern(r"[ \t]*[+-]?0[0-9]+[ \t]*")
"""Integers that would lose a zero if they were read as numbers: codes, most likely."""
_NONZERO = Pattern(r"[^e]*[1-9].*")
"""A number that is not zero: one with another digit before its exponent."""
_SHOWN_DIGITS = 40
_MOST_DIGITS = 20
_SOME = 1000
"""The cells of a column that are looked at before all of them."""
_FEW = 50
"""Those that are matched before there is a quicker look for numbers among words."""
_EXACT = 2.0**53
"""Below this every integer is a float64."""
_LEAST_PLAIN, _MOST_PLAIN = 1e-4, 1e9
"""Between these, everybody writes fractions with the fewest digits and without an exponent."""
_DIGIT = re.compile("[0-9]")
_LETTERS = ord("<")
"""What is behind digits, signs, spaces, and what separates cells: letters, and little else."""


def _table(characters: str) -> bytes:
    """Return for each byte whether it is one of some characters."""
    return bytes(chr(byte) in characters for byte in range(256))


def _among(characters: NDArray[np.uint8], table: bytes) -> NDArray[np.bool_]:
    """Return which characters are those of a table."""
    return np.frombuffer(characters.tobytes().translate(table), np.bool_)


_DIGITS, _BLANKS = "0123456789.", " \t"
_FIRST, _LAST = _table(_DIGITS + "+-nNiI" + _BLANKS), _table(_DIGITS + "nNfFyY" + _BLANKS)
"""The characters that numbers begin with, and those that they end in."""
_INNER, _BEFORE_SIGN = _table(_DIGITS + "eEnNaAiIfFtTyY" + _BLANKS), _table("eE" + _BLANKS)
"""The characters of numbers behind the first; signs are among them only behind some."""
_PLACES = (0, -1, 4, 2, 3, 1, 6)
"""The first character, the last, and where dates, times, addresses and names that begin with digits have others."""


def numbers_of(cells: Any, error: Error, named: bool, missing: str | None) -> NDArray[Any] | None:
    """Convert a column's cells to integers if possible, else to float64; None if no cell is a number.

    A column that the user has named is one of numbers, whatever zeros its cells begin with.
    """
    values = _usual_numbers(cells)
    if values is not None:
        return values if values.dtype.kind == "i" else _with_right_zeros(values, cells, error)
    compute = pyarrow.compute
    if not (named or _has_number(cells.slice(0, _FEW))):
        places = telling_places(cells)
        if not any(has_number(chunk, places) for chunk in cells.chunks):
            return None
    are_numbers = NUMBER.fit(cells)
    if not named:
        are_numbers = compute.and_not(are_numbers, CODE.fit(cells))
    if missing is not None:
        empty = compute.equal(compute.utf8_trim(cells, " \t"), "")
        cells = compute.if_else(empty, missing, cells)
        are_numbers = compute.or_(are_numbers, empty)
        error = _of_missing(error, empty, missing)
    row = compute.index(are_numbers, False).as_py()
    if row >= 0:
        raise error(row, _not_a_number(cells[row].as_py()))
    if compute.all(_INTEGER.fit(cells)).as_py():
        return _integers(cells, error)
    return _floats(cells, error)


def _of_missing(error: Error, empty: Any, missing: str) -> Error:
    """Have errors in cells that are empty say which option their number is from."""

    def made(row: int, problem: str) -> CommandError:
        return error(row, of_missing(missing, problem) if empty[row].as_py() else problem)

    return made


def of_missing(missing: str, problem: str) -> str:
    """Return what is wrong with an empty cell: with the number that stands for it."""
    return f"the cell is empty, and --missing {missing}: {problem}"


def floats_of(cells: Any, error: Error, missing: str | None) -> NDArray[np.float64]:
    """Convert cells, all of which are numbers or empty, to float64, also where all are integers."""
    if missing is not None:
        empty = pyarrow.compute.equal(pyarrow.compute.utf8_trim(cells, " \t"), "")
        cells = pyarrow.compute.if_else(empty, missing, cells)
        error = _of_missing(error, empty, missing)
    return _floats(cells, error)


def other_than_number(cells: Any, missing: str | None) -> tuple[int, str] | None:
    """Return the row of the first cell that is no number, and what is wrong with it; None if there is none."""
    compute = pyarrow.compute
    fit = compute.and_not(NUMBER.fit(cells), CODE.fit(cells))
    if missing is not None:
        fit = compute.or_(fit, compute.equal(compute.utf8_trim(cells, " \t"), ""))
    row = compute.index(fit, False).as_py()
    return None if row < 0 else (row, _not_a_number(cells[row].as_py()))


def _floats(cells: Any, error: Error) -> NDArray[np.float64]:
    values = _cast(cells, pyarrow.float64())
    if values is None:  # it reads no spaces
        values = np.array(list(map(float, cells.to_pylist())), np.float64)
    return _checked(values, cells, error)


def _has_number(cells: Any) -> bool:
    compute = pyarrow.compute
    return bool(compute.any(compute.and_not(NUMBER.fit(cells), CODE.fit(cells))).as_py())


def telling_places(cells: Any) -> list[int]:
    """Return the places of characters that show that cells like the first ones of a column are no numbers."""
    if not cells.num_chunks:
        return []
    text, first, last = _characters(cells.chunk(0).slice(0, _SOME))
    left = {place: np.count_nonzero(_may_be(text, first, last, place)) for place in _PLACES}
    # Those that tell of most cells come first, and those that tell of none are left out.
    return sorted((place for place in _PLACES if left[place] < len(first)), key=left.__getitem__)


def has_number(part: Any, places: Sequence[int]) -> bool:
    """Do as `_has_number` for an array, but match only cells of which characters at some places tell too little."""
    if are_codes(part):
        return False
    text, first, last = _characters(part)
    fit = kept = None
    for place in places:
        others = _may_be(text, first, last, place)
        fit = others if fit is None else fit & others
        if not fit.any():
            return False
        if others is not fit:  # two places tell of most cells
            few = np.flatnonzero(fit)
            kept, first, last, fit = few if kept is None else kept[few], first[few], last[few], None
    compute = pyarrow.compute
    if fit is not None:
        few = np.flatnonzero(fit)
        kept = few if kept is None else kept[few]
    if kept is not None:
        part = part.take(pyarrow.array(kept))
    codes = compute.and_(compute.ascii_is_decimal(part), compute.starts_with(part, "0"))
    codes = compute.and_(codes, compute.greater(compute.binary_length(part), 1))
    return _has_number(part.filter(compute.invert(codes)))


def are_codes(part: Any) -> bool:
    """Whether all cells of an array are digits behind a zero."""
    text, first, last = _characters(part)
    if not len(part) or not text[first[0] : last[-1] + 1].size or text[first[0]] != ord("0"):
        return False
    digits = text[first[0] : last[-1] + 1] - np.uint8(ord("0"))  # wraps
    return bool((first < last).all() and (digits < 10).all() and (text.take(first, mode="clip") == ord("0")).all())


def _may_be(
    text: NDArray[np.uint8], first: NDArray[np.int32], last: NDArray[np.int32], place: int
) -> NDArray[np.bool_]:
    """Return which cells may be numbers, as far as a character tells; that of an empty cell is any."""
    if not text.size:
        return np.zeros(len(first), np.bool_)
    if place < 0:
        return _among(text.take(last, mode="clip"), _LAST)
    at = np.minimum(first, last - np.int32(place)) + np.int32(place) if place else first
    characters = text.take(at, mode="clip")
    if not place:
        return _among(characters, _FIRST)
    fit = _among(characters, _INNER)
    signs = (characters == ord("-")) | (characters == ord("+"))
    if signs.any():
        fit = fit | (signs & _among(text.take(at - 1, mode="clip"), _BEFORE_SIGN))
    return fit


def _characters(chunk: Any) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32]]:
    """Return the text of cells, and where in it each has its first and its last character."""
    _, offsets, data = chunk.buffers()
    places = np.frombuffer(offsets or b"\0\0\0\0", np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
    text = np.frombuffer(b"" if data is None else data, np.uint8)
    return text, places[:-1], places[1:] - np.int32(1)


def _usual_numbers(cells: Any) -> NDArray[Any] | None:
    """Convert cells that are surely numbers as pyarrow reads them, without a look at each; None for all others.

    pyarrow also reads digits behind zeros, hexadecimal ones among them, and perhaps other words for NaN. Integers with
    a plus and those beyond 64 bits would become float64, and numbers beyond that infinity.
    """
    if _kind_of(cells.slice(0, _FEW)) is None or any(_begin_oddly(chunk) for chunk in cells.chunks):
        return None
    values = _cast(cells, pyarrow.int64())
    if values is not None:
        return values
    values = _cast(cells, pyarrow.float64())
    if values is None:
        return None
    if are_exact(values):
        return values
    others = np.flatnonzero(~(np.abs(values) < _EXACT))
    # Taking none would cost as much as taking many.
    if pyarrow.compute.all(_WORD.fit(cells.take(pyarrow.array(others)))).as_py():
        return values
    return None


def _kind_of(cells: Any) -> Any:
    """Return the type as which pyarrow reads a few cells; None if it has none."""
    return next((kind for kind in (pyarrow.int64(), pyarrow.float64()) if _cast(cells, kind) is not None), None)


def are_exact(values: NDArray[np.float64]) -> bool:
    """Whether all numbers are so small that every integer like them is a float64; infinity and NaN are not."""
    return not values.size or bool(np.min(values) > -_EXACT and np.max(values) < _EXACT)


def _cast(cells: Any, kind: Any) -> NDArray[Any] | None:
    """Convert cells to a type; None if one of them is nothing of it."""
    try:
        cells.slice(0, _FEW).cast(kind)  # pyarrow makes a message for each cell
        return np.asarray(cells.cast(kind).to_numpy())
    except pyarrow.ArrowInvalid:
        return None


def _begin_oddly(chunk: Any) -> bool:
    """Whether any cell begins as codes may, or with what hides that.

    That is a zero, perhaps after a minus, that a digit or letter follows; or a space or a plus without a letter behind.
    """
    text, first, last = _characters(chunk)
    if not text.size:
        return False  # no cell has a character
    # Behind the last cell there may be nothing: what is then taken belongs to no cell, and `last` says so.
    begin, follows = text.take(first, mode="clip"), first < last
    odd = ((begin == ord("+")) | (begin == ord(" ")) | (begin == ord("\t"))) & (first <= last)
    if odd.any():
        odd &= ~follows | (text.take(first + 1, mode="clip") < _LETTERS)
    minus = (begin == ord("-")) & follows
    if minus.any():
        first = first + minus
        begin = text.take(first, mode="clip")
    zeros = (begin == ord("0")) & (first < last)
    if zeros.any():
        odd |= zeros & (text.take(first + 1, mode="clip") > ord("."))
    return bool(odd.any())


def _checked(values: NDArray[np.float64], cells: Any, error: Error) -> NDArray[np.float64]:
    """Return what cells were read as; those that are beyond float64 are errors."""
    # What is written as an integer is meant exactly; other numbers are rounded to the nearest float64.
    for row in np.flatnonzero(~(np.abs(values) < _EXACT)).tolist():
        cell = cells[row].as_py()
        if _INTEGER.fits(cell) and not _is_exact(cell, values[row]):
            raise error(
                row,
                f"{shown(cell)} has no exact float64, which other numbers of the column need; write it with a decimal "
                "point if it may be rounded, or leave the column out with --columns",
            )
        if math.isinf(values[row]) and _DIGIT.search(cell):
            raise error(row, f"{shown(cell)} is beyond float64; correct it, or write inf")
    return _with_right_zeros(values, cells, error)


def _with_right_zeros(values: NDArray[np.float64], cells: Any, error: Error) -> NDArray[np.float64]:
    """Return what cells were read as; a zero that is written as another number is an error."""
    zeros = np.flatnonzero(values == 0)
    if not zeros.size:
        return values
    wrong = pyarrow.compute.index(_NONZERO.fit(cells.take(pyarrow.array(zeros))), True).as_py()
    if wrong >= 0:
        cell = cells[int(zeros[wrong])].as_py()
        raise error(int(zeros[wrong]), f"{shown(cell)} is too small for float64, which has 0 for it; correct it")
    return values


def _not_a_number(cell: str) -> str:
    if not cell.strip():
        return (
            "the cell is empty; --missing nan carries the gap through, --missing 0 has 0 there, and --columns chooses"
        )
    if CODE.fits(cell):
        return (
            f"{shown(cell)} begins with 0, as codes do, while other cells are numbers; name the column with --columns "
            "if it holds numbers, or leave it out with --columns"
        )
    return f"{shown(repr(cell))} is not a number; correct it, or leave the column out with --columns"


def _integers(column: Any, error: Error) -> NDArray[Any]:
    """Convert cells that are written as integers to int64, or to uint64 if that takes them all."""
    found = _cast(column, pyarrow.int64())
    if found is not None:
        return found
    cells = column.to_pylist()  # perhaps with plus signs and spaces
    # No integer of 64 bits has more digits, and Python refuses to read those with very many.
    long = next(
        (row for row, cell in enumerate(cells) if len(cell) > _MOST_DIGITS and _digits(cell) > _MOST_DIGITS), None
    )
    values = [] if long is not None else [int(_trimmed(cell)) for cell in cells]
    if values:
        low, high = min(values), max(values)
        for kind in (np.int64, np.uint64):
            info = np.iinfo(kind)
            if info.min <= low and high <= info.max:
                return np.array(values, kind)
    if long is not None:
        raise error(long, too_wide(cells[long]))
    beyond = [row for row, value in enumerate(values) if not -(2**63) <= value < 2**64]
    row = beyond[0] if beyond else next(row for row, value in enumerate(values) if value >= 2**63)
    raise error(row, too_wide(cells[row]))


def too_wide(cell: str) -> str:
    """Say that an integer has no type; of those that uint64 holds, that the column has negative ones besides."""
    is_unsigned = _digits(cell) <= _MOST_DIGITS and 2**63 <= int(_trimmed(cell)) < 2**64
    signed = " with a sign, which negative numbers of the column need" if is_unsigned else ""
    return (
        f"{shown(cell)} does not fit in 64 bits{signed}; write it with a decimal point, or leave the column out with "
        "--columns"
    )


def _trimmed(cell: str) -> str:
    """Return an integer without spaces and leading zeros, of which Python counts all."""
    cell = cell.strip()
    sign = cell[0] if cell[0] in "+-" else ""
    return sign + (cell[len(sign) :].lstrip("0") or "0")


def _digits(cell: str) -> int:
    return len(_trimmed(cell).lstrip("+-"))


def _is_exact(cell: str, value: float) -> bool:
    """Whether an integer is the number that it was read as."""
    return math.isfinite(value) and int(_trimmed(cell)) == int(value)


def shown(cell: str) -> str:
    """Return a cell for a message."""
    cell = cell.strip()
    return cell if len(cell) <= _SHOWN_DIGITS else f"{cell[:20]}...{cell[-10:]} ({len(cell)} characters)"


def texts_of(values: NDArray[Any]) -> list[str]:
    """Write numbers with the fewest digits that read back to the same bits."""
    if values.dtype.kind != "f":
        return [str(int(value)) for value in values.tolist()]
    if values.dtype == np.float64:
        return _texts_of_doubles(values)
    texts: list[str] = values.astype(np.str_).tolist()
    # The fewest digits for float32 identify it among float32 numbers. A reader that goes through float64 rounds twice,
    # which very rarely ends at the neighbour (7.038531e-26); such a number is written with float64's digits.
    with np.errstate(over="ignore"):
        back = np.array([float(text) for text in texts]).astype(values.dtype)
    for i in np.flatnonzero((back != values) & ~np.isnan(values)).tolist():
        texts[i] = repr(float(values[i]))
    return texts


def _texts_of_doubles(values: NDArray[np.float64]) -> list[str]:
    """Write numbers as Python does; pyarrow, which is quicker, has other exponents, and no point behind integers."""
    sizes = np.abs(values)
    others = ~((sizes >= _LEAST_PLAIN) & (sizes < _MOST_PLAIN) & (values != np.rint(values)))
    if 2 * np.count_nonzero(others) > len(values):
        return list(map(repr, values.tolist()))
    texts: list[str] = pyarrow.array(values).cast(pyarrow.string()).to_pylist()
    for i in np.flatnonzero(others).tolist():
        texts[i] = repr(float(values[i]))
    return texts
