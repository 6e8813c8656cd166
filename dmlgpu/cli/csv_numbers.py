"""Columns of numbers that pyarrow may read without their text, because a closer look would find the same."""

from __future__ import annotations

import csv
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pyarrow

from .csv_text import Source
from .numerals import are_exact, kind_of, odd_beginnings

__all__ = ["usual_columns"]

_SAMPLES = 16
_SAMPLE = 1 << 12
"""Bytes of a text that are looked at in so many places, to guess what its columns are."""
_AT_ONCE = 1 << 18
"""Bytes of a text that are compared at once: a core's own cache has room for them."""
_LINE_FEEDS = np.full(3, ord("\n"), np.uint8)
_VANISHING_ZEROS = b"0" * 200
"""A number other than 0 that is 0 in float64 has so many zeros, or three digits behind an e and a minus."""


def usual_columns(source: Source, *, has_header: bool, wanted: Collection[int]) -> list[Any] | None:
    """Return the columns, without the header.

    pyarrow also reads what is no number here, such as digits behind zeros, which may be codes: no cell of a column of
    numbers may begin as these do. As the cells' text is not there any more, all the text is searched for beginnings of
    this kind, and as many must be among the cells that are kept as text.

    Parameters
    ----------
    source : Source
        The text.
    has_header : bool
        Whether its first row is a header.
    wanted : collection of int
        The columns that may be numbers.

    Returns
    -------
    list or None
        Of each column a NumPy array of its numbers, or its cells as an array of strings, some of which may be numbers,
        too. None if it takes a closer look to say what the columns are.
    """
    if not source.is_plain or not source.begins_with_a_row:
        return None
    body = source.content.find(b"\n", source.begin, source.end) if has_header else source.begin - 1
    if has_header and body < 0:
        return None
    kinds = _kinds(source, body + 1, wanted)
    if all(kind == pyarrow.string() for kind in kinds) or not _lines_are_short(source):
        return None
    with ThreadPoolExecutor(1) as pool:  # pyarrow does not keep all cores busy
        looking = pool.submit(_look, source, body)
        try:
            table = source.read(kinds, skipped=int(has_header))
        except pyarrow.ArrowInvalid:  # such as for lines of different lengths, and words among numbers
            return None
        found = looking.result()
    if table.num_rows != found.lines:
        return None  # pyarrow has lost rows of very small blocks
    columns, texts = list(table.columns), [i for i, kind in enumerate(kinds) if kind == pyarrow.string()]
    if found.odd and found.odd != sum(odd_beginnings(chunk) for i in texts for chunk in columns[i].chunks):
        return None
    again, zeros = [], []
    for i, kind in enumerate(kinds):
        if i not in texts:
            columns[i] = columns[i].to_numpy()
        if kind == pyarrow.float64():
            if not are_exact(columns[i]):  # integers that are rounded, infinity and NaN
                again.append(i)
            elif np.count_nonzero(columns[i]) < len(columns[i]):
                zeros.append(i)
    if zeros and _may_vanish(source, body):
        again += zeros
    if again:
        read = source.read([pyarrow.string()] * len(kinds), skipped=int(has_header), only=again)
        for i, cells in zip(again, read.columns, strict=True):
            columns[i] = cells
    return columns


def _kinds(source: Source, begin: int, wanted: Collection[int]) -> list[Any]:
    """Guess the types of all columns from lines at some places."""
    content, end, kinds = source.content, source.end, [pyarrow.string()] * len(source.first_row())
    lines = []
    for i in range(_SAMPLES):
        start = begin + (end - begin) * i // _SAMPLES
        if i:
            start = content.find(b"\n", start, end) + 1
        stop = content.rfind(b"\n", start, min(start + _SAMPLE, end)) if end - start > _SAMPLE else end
        if begin <= start < stop:
            lines.append(content[start:stop])
    try:
        sample = Source(source.path, b"\n".join(lines), 1, source.dialect).read(kinds)
    except pyarrow.ArrowInvalid:
        return kinds
    for i in wanted:
        kinds[i] = kind_of(sample.column(i)) or kinds[i]
    return kinds


def _lines_are_short(source: Source) -> bool:
    """Whether no cell is too long for the reader that goes from row to row."""
    step = csv.field_size_limit() // 2
    places = range(source.begin, source.end - step, step)
    return all(source.content.find(b"\n", place, place + step) >= 0 for place in places)


class _Found(NamedTuple):
    """What a search of a text has found."""

    lines: int
    odd: int


def _look(source: Source, before: int) -> _Found:
    """Count the rows of a text, and the cells that begin as `odd_beginnings` says.

    Parameters
    ----------
    source : Source
        The text, which has no quotes.
    before : int
        The place before the first row, for which a line feed is taken.
    """
    text, delimiter = np.frombuffer(source.content, np.uint8, source.end), ord(source.dialect.delimiter)
    has_delimiter = source.content.find(delimiter, source.begin, source.end) >= 0
    lines = odd = 0
    memory = np.empty((4, _AT_ONCE + 1), np.bool_)
    for start in range(before, source.end, _AT_ONCE):
        length = min(_AT_ONCE, source.end - start)
        stop = start + length + 3  # three characters are behind the last border
        part = text[start:stop] if start > before else np.concatenate([_LINE_FEEDS[:1], text[start + 1 : stop]])
        if len(part) < length + 3:
            part = np.concatenate([part, _LINE_FEEDS])[: length + 3]
        border, first = part[:length], part[1 : length + 1]
        begins, zero, some, negative = memory[0, :length], memory[1, : length + 1], memory[2], memory[3, :length]
        np.equal(border, ord("\n"), out=begins)
        lines += int(np.count_nonzero(begins))
        if has_delimiter:
            begins |= np.equal(border, delimiter, out=some[:length])
        for sign in b"+ \t":
            if source.content.find(sign, start + 1, stop) >= 0:
                odd += int(np.count_nonzero(begins & (first == sign)))
        np.equal(part[1:-1], ord("0"), out=zero)
        zero &= np.not_equal(part[2:], ord("."), out=some[: length + 1])
        np.equal(first, ord("-"), out=negative)
        negative &= zero[1:]
        negative |= zero[:-1]
        negative &= begins
        if negative.any():  # zeros that end their cells are among them
            at = np.flatnonzero(negative) + 1
            behind = part[at + 1 + (part[at] == ord("-"))]
            odd += int(np.count_nonzero((behind != ord("\n")) & (behind != delimiter)))
    return _Found(lines, odd)


def _may_vanish(source: Source, begin: int) -> bool:
    """Whether a number other than 0 may be 0 in float64."""
    content, begin = source.content, max(begin, 0)
    if content.find(_VANISHING_ZEROS, begin, source.end) >= 0:
        return True
    letters = [letter for letter in b"eE" if content.find(letter, begin, source.end) >= 0]
    text = np.frombuffer(content, np.uint8, source.end)
    for start in range(begin, source.end - 4, _AT_ONCE) if letters else ():
        part = text[start : start + _AT_ONCE + 4]
        minus = part[1:-3] == ord("-")
        for letter in letters:
            at = np.flatnonzero(minus & (part[:-4] == letter))
            digits = part[at[:, None] + (2, 3, 4)] - ord("0")  # wraps
            if np.any(np.all(digits < 10, axis=1)):
                return True
    return False
