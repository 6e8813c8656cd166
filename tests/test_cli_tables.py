"""Tables of the command line, read, written and summarized without a device."""

from __future__ import annotations

import csv
import io
import re
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dmlgpu.cli import csv_files, csv_numbers, csv_text, numerals
from dmlgpu.cli.console import CommandError
from dmlgpu.cli.csv_files import read_table, write_table
from dmlgpu.cli.raw_files import reading
from dmlgpu.cli.summary import describe, statistics, summarize
from dmlgpu.cli.table import Column, Dialect, Table, array_table
from dmlgpu.cli.table_stream import Place

from .cli_runner import bits


def table_of(path: Path, text: str | bytes, **options: object) -> Table:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_table(path, **options)  # type: ignore[arg-type]


def text_of(table: Table) -> str:
    file = io.BytesIO()
    write_table(file, table)
    return file.getvalue().decode()


class TestReadTable:
    def test_types_of_columns(self, tmp_path: Path) -> None:
        table = table_of(
            tmp_path / "a.csv", 'day,n,x,big,note\n2024-01-01,1,0.5,18446744073709551615,"a, b"\n2024-01-02,-2,1e3,0,\n'
        )
        assert [column.name for column in table.columns] == ["day", "n", "x", "big", "note"]
        assert [getattr(column.numbers, "dtype", None) for column in table.columns] == [
            None,
            np.int64,
            np.float64,
            np.uint64,
            None,
        ]
        assert table.columns[4].cells.to_pylist() == ["a, b", ""]
        assert table.header
        assert table.rows == 2

    def test_one_fraction_makes_a_column_floating_point(self, tmp_path: Path) -> None:
        table = table_of(tmp_path / "a.csv", "1\n2.0\n3\n")
        assert table.columns[0].numbers is not None
        assert bits(table.columns[0].numbers) == bits(np.array([1.0, 2.0, 3.0]))

    def test_special_values(self, tmp_path: Path) -> None:
        table = table_of(tmp_path / "a.csv", "x\n-0.0\nnan\n-inf\n4.9e-324\n")
        assert table.columns[0].numbers is not None
        assert bits(table.columns[0].numbers) == bits(np.array([-0.0, np.nan, -np.inf, 5e-324]))

    @pytest.mark.parametrize(
        ("text", "header", "expected"),
        [
            ("a,b\n1,2\n", "auto", True),
            ("1,2\n3,4\n", "auto", False),
            ("2024-01-01,5\n2024-01-02,6\n", "auto", False),
            ("a,b\nx,2\n", "no", False),
            ("2019,2020\n1,2\n", "yes", True),
            ("2019,2020\n1,2\n", "auto", False),
            ("nan\n1\n", "auto", False),
        ],
    )
    def test_header(self, tmp_path: Path, text: str, header: str, expected: bool) -> None:
        only = ["1"] if text == "1,2\n3,4\n" else None
        if header == "no":
            with pytest.raises(CommandError, match="line 1, column number 2: 'b' is not a number"):
                table_of(tmp_path / "a.csv", text, header=header)
        else:
            table = table_of(tmp_path / "a.csv", text, header=header, only=only)
            assert table.header is expected
            assert table.rows == (1 if expected else 2)

    @pytest.mark.parametrize(
        "text",
        [
            "id,2019,2020\n1,5,6\n2,7,8\n",
            "id, 2019 ,1\n1,5,6\n",
            "id,7\n1.5,x\n",
            "country,2019,2020\nDE,1.5,2\nFR,2019,3\n",
            "country;2010;2015;2020\nDE;1;2;3\n",
        ],
    )
    def test_numbers_that_are_names(self, tmp_path: Path, text: str) -> None:
        with pytest.warns(
            UserWarning, match=r"a\.csv: line 1 is taken for a header, with the names \w+, .*--header no"
        ):
            table = table_of(tmp_path / "a.csv", text)
        assert table.header
        assert text_of(table).splitlines()[0] == text.splitlines()[0]
        with pytest.raises(CommandError) if text.startswith("id") else nullcontext():
            assert not table_of(tmp_path / "a.csv", text, header="no").header

    @pytest.mark.parametrize(
        "text",
        [
            "2019,2020\n1,2\n",
            "n/a,5\nx,6\n",
            "x,5\ny,6\n",
            "x,1,2\ny,3,4\n",
            "x,2019\ny,1\n",
            "x,2020,2019\ny,1,2\n",
            "x,2019,2020\ny,2018,2021\n",
            "x,2019,2020\n",
            "x,2019,12\ny,1,2\n",
            "x,-2019,2020\ny,1,2\n",
            "x,x,2019,2020\ny,z,1,2\n",
        ],
    )
    def test_numbers_that_are_data(self, tmp_path: Path, text: str) -> None:
        assert not table_of(tmp_path / "a.csv", text).header

    @pytest.mark.parametrize("first", ["n/a,5", "NA,5", "-,5", "None,5", "id,5.5", "id,-5", "id,05", "id,5,5"])
    def test_what_may_be_data_is_no_header(self, tmp_path: Path, first: str) -> None:
        below = "1" + ",2" * first.count(",")
        with pytest.raises(CommandError, match=r"line 1, column number 1: '.*' is not a number"):
            table_of(tmp_path / "a.csv", f"{first}\n{below}\n{below}\n")

    @pytest.mark.parametrize(
        ("missing", "expected"),
        [
            ("0", np.array([1, 0, 0, 4])),
            ("nan", np.array([1, np.nan, np.nan, 4])),
            ("-0.5", np.array([1, -0.5, -0.5, 4])),
            ("18446744073709551615", np.array([1, 2**64 - 1, 2**64 - 1, 4], np.uint64)),
        ],
    )
    def test_empty_cells(self, tmp_path: Path, missing: str, expected: np.ndarray) -> None:
        text = "day,a,note\nx,1,\n,,\ny, \t,\nz,4,\n"
        table = table_of(tmp_path / "a.csv", text, missing=missing)
        assert table.columns[1].numbers is not None
        assert bits(table.columns[1].numbers) == bits(expected)
        assert [column.cells.to_pylist() for column in table.columns[::2]] == [["x", "", "y", "z"], [""] * 4]

    def test_an_empty_column_that_is_named_has_numbers(self, tmp_path: Path) -> None:
        table = table_of(tmp_path / "a.csv", "a,b\n,1\n,2\n", only=["a"], missing="7")
        assert table.columns[0].cells.tolist() == [7, 7]

    def test_what_is_missing_hides_no_other_error(self, tmp_path: Path) -> None:
        with pytest.raises(CommandError, match="line 4, column a: 'x' is not a number"):
            table_of(tmp_path / "a.csv", "a,b\n,1\n2,2\nx,3\n", missing="0")
        with pytest.raises(CommandError, match="line 3, column a: 9007199254740993 has no exact float64"):
            table_of(tmp_path / "a.csv", "a,b\n,1\n9007199254740993,2\n", missing="0.5")

    @pytest.mark.parametrize(("name", "place"), [("b", 2), ("b ", 1), ("c", 3), (" a", 0)])
    def test_spaces_around_names(self, tmp_path: Path, name: str, place: int) -> None:
        """The exact name comes first; else spaces around names are nothing."""
        table = table_of(tmp_path / "a.csv", "a,b ,b, c\n1,2,3,4\n", only=[name])
        assert table.numeric == [place]
        with pytest.raises(CommandError, match="has 2 columns named ' b'"):
            table_of(tmp_path / "a.csv", "a,b ,b, c\n1,2,3,4\n", only=[" b"])

    @pytest.mark.parametrize(
        ("text", "delimiter"),
        [
            ("a,b\n1,2\n", ","),
            ("a;b\n1;2\n", ";"),
            ("a\tb\n1\t2\n", "\t"),
            ('"a;b;c",d\n1,2\n', ","),
            ("a\n1\n", ","),
            ("a,b;c,d\n1,2,3\n", ","),
            ('"a\n(s)";"b\n(m)"\n1;2\n', ";"),
            ('"a\r\n,,"\tb\n1\t2\n', "\t"),
        ],
    )
    def test_delimiter(self, tmp_path: Path, text: str, delimiter: str) -> None:
        assert table_of(tmp_path / "a.csv", text).dialect.delimiter == delimiter

    def test_the_line_end_is_that_of_the_first_row(self, tmp_path: Path) -> None:
        for quoted, end in product(("a", '"a\nb"', '"a\r\nb"', '"a\n\nb"'), ("\n", "\r\n")):
            assert table_of(tmp_path / "a.csv", f"{quoted},c{end}1,2{end}").dialect.line_end == end

    def test_a_quote_around_nothing_ends_no_search_for_the_first_row(self, tmp_path: Path) -> None:
        assert table_of(tmp_path / "a.csv", '5" disk;b\n1;2\n' + "3;4\n" * 1000).dialect.delimiter == ";"

    def test_columns_choose_what_is_numeric(self, tmp_path: Path) -> None:
        table = table_of(tmp_path / "a.csv", 'year,"a,b",c\n2019,1,n/a\n2020,2,5\n', only=["a,b"])
        assert table.numeric == [1]
        assert table.columns[0].cells.to_pylist() == ["2019", "2020"]

    def test_blank_lines_at_the_end_are_nothing(self, tmp_path: Path) -> None:
        assert table_of(tmp_path / "a.csv", "a\n1\n\n\n").rows == 1

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "a,b\n1,2\n3\n",
                "line 3 has 1 cell where line 1 has 2; give both as many, and cells that contain ',' quotes around",
            ),
            ("a\n1\n2,3\n", "line 3 has 2 cells where line 1 has 1; give both as many"),
            ("a;b\n1;2\n3\n", "line 3 has 1 cell where line 1 has 2; give both as many, and cells that contain ';'"),
            (
                "a,b\n1,2\n3,\n",
                "line 3, column b: the cell is empty; --missing nan carries the gap through, --missing 0 ",
            ),
            ("a,b\n1,2\n3, \n", "line 3, column b: the cell is empty"),
            ("a,b\n1,2\nx,4\n", "line 3, column a: 'x' is not a number"),
            ("a\n1_000\n1\n", "line 2, column a: '1_000' is not a number"),
            ("a,a\n1,2\nx,4\n", "line 3, column a: 'x' is not a number"),
            (",b\n1,2\nx,4\n", "line 3, column number 1: 'x' is not a number"),
            ('t,n\n"two\nlines",1\n"x",y\n', "line 4, column n: 'y' is not a number"),
            ("a\n1\n18446744073709551616\n", "line 3, column a: 18446744073709551616 does not fit in 64 bits; "),
            (
                "a\n-1\n9223372036854775808\n",
                "line 3, column a: 9223372036854775808 does not fit in 64 bits with a sign, which negative numbers of",
            ),
            (
                "a\n9223372036854775808\n18446744073709551616\n",
                "line 3, column a: 18446744073709551616 does not fit in 64 bits; ",
            ),
            ("a\n+18446744073709551615\n-1\n", "18446744073709551615 does not fit in 64 bits with a sign"),
            (
                "a\n1\n" + "1" * 5000 + "\n",
                "line 3, column a: 11111111111111111111...1111111111 (5000 characters) does not",
            ),
            ("a\n1.5\n" + "1" * 5000 + "\n", "(5000 characters) has no exact float64"),
            (
                "a\n-" + "9" * 5000 + "\n1.5\n",
                "line 2, column a: -9999999999999999999...9999999999 (5001 characters) has",
            ),
            (
                "a\n0.5\n9007199254740993\n",
                "line 3, column a: 9007199254740993 has no exact float64, which other numbers",
            ),
            ("a\n-9007199254740993\nnan\n", "line 2, column a: -9007199254740993 has no exact float64"),
            ("a\n18446744073709551617\n1e3\n", "line 2, column a: 18446744073709551617 has no exact float64"),
            ("a\n1e309\n", "line 2, column a: 1e309 is beyond float64; correct it, or write inf"),
            ("a\n1\n-1.8e308\n", "line 3, column a: -1.8e308 is beyond float64"),
            ("a\n1e-400\n", "line 2, column a: 1e-400 is too small for float64, which has 0 for it"),
            ("a\n-0.0e5\n-0.1e-999\n", "line 3, column a: -0.1e-999 is too small for float64"),
            ("a\n1\n01234\n", "line 3, column a: 01234 begins with 0, as codes do, while other cells are numbers"),
            ("a\n-007\n1.5\n", "line 2, column a: -007 begins with 0, as codes do"),
            ("a\n1\n\u0663\n", "line 3, column a: '\u0663' is not a number"),
            ("a\n1\n\uff11\n", "line 3, column a: '\uff11' is not a number"),
            ("a\n1\n\xa02\n", "line 3, column a: '\\xa02' is not a number"),
            ("a\n1\n0x1F\n", "line 3, column a: '0x1F' is not a number"),
            ("a\n1\n1,5\n", "line 3 has 2 cells where line 1 has 1"),
            ("a\n1\n1e\n", "line 3, column a: '1e' is not a number"),
            ("a\n1\n.\n", "line 3, column a: '.' is not a number"),
            (
                "a\n1\n" + "x" * 99 + "\n",
                "line 3, column a: 'xxxxxxxxxxxxxxxxxxx...xxxxxxxxx' (101 characters) is not a number",
            ),
            (
                "a\n" + "x" * 200_000 + "\n",
                "line 2: field larger than field limit (131072); shorten the cell, or end it with",
            ),
            ("a\n1\n\n2\n", "line 3 is blank"),
            ("\n\n\n", "nothing but blank lines"),
            ("a,b\n", "no rows below its header"),
            ("a\n007\n", "is written as '.'; codes such as 01234 are numbers in columns that --columns names"),
            ("x,y\na,b\n", "no column of numbers"),
            ("x;y\n1,5;2,5\n", "no column of numbers"),
            ('a\n"1\n2\n', "line 3: the text ends within a quoted cell; end quoted cells with a quote, and"),
            (
                'a\n"1"2\n',
                "line 2: ',' expected after '\"'; end quoted cells with a quote, and write a quote within one ",
            ),
            (
                b"a\n1\n\xff\n",
                "line 3: not UTF-8 text but most likely Windows-1252, in which the byte 0xFF is '\xff'",
            ),
            (b"caf\xe9\n1\n", "line 1: not UTF-8 text but most likely Windows-1252, in which the byte 0xE9 is '\xe9'"),
            (b"a\r1\r\xe9\r", "line 3: not UTF-8"),
            (b"a\r\n\xe9", "line 2: not UTF-8"),
            (b"a\n\x81\n", "line 2: not UTF-8 text: the byte 0x81 begins no character; save the file as UTF-8"),
            ("a\n1\n".encode("utf-16"), "a.csv: not UTF-8 text but UTF-16, as its first bytes tell; save it as UTF-8"),
            ("a\n1\n".encode("utf-32"), "not UTF-8 text but UTF-32, as its first bytes tell"),
            ("a\n1\n".encode("utf-16-le"), "or convert it: iconv -f UTF-16LE -t UTF-8"),
            ("a\n1\n".encode("utf-16-be"), "or convert it: iconv -f UTF-16BE -t UTF-8"),
        ],
    )
    def test_errors_say_where(self, tmp_path: Path, text: str | bytes, message: str) -> None:
        with pytest.raises(CommandError) as caught:
            table_of(tmp_path / "a.csv", text)
        assert message in str(caught.value)

    @pytest.mark.parametrize(
        ("cells", "expected"),
        [
            ("-0 0 +0", np.array([0, 0, 0])),
            ("-0 0.0 +0", np.array([-0.0, 0, 0])),
            ("0 0.5", np.array([0, 0.5])),
            ("9223372036854775807 -9223372036854775808", np.array([2**63 - 1, -(2**63)])),
            ("18446744073709551615 0", np.array([2**64 - 1, 0], np.uint64)),
            ("+5 7", np.array([5, 7])),
            ("9007199254740992 0.5", np.array([2.0**53, 0.5])),
            ("1180591620717411303424 0.5", np.array([2.0**70, 0.5])),
            ("9007199254740993.0 0.5", np.array([2.0**53, 0.5])),
            ("9007199254740993e0 0.5", np.array([2.0**53, 0.5])),
            ("1.7976931348623157e308 4.9e-324 0.0e-999", np.array([1.7976931348623157e308, 5e-324, 0])),
            ("1. .5 1E3 1e+3", np.array([1, 0.5, 1000, 1000])),
            ("NaN +nan INF +inf -Infinity", np.array([np.nan, np.nan, np.inf, np.inf, -np.inf])),
            ("001.50 1.0", np.array([1.5, 1])),
            ("01234 00000", None),
            ("007 x", None),
        ],
    )
    def test_what_numbers_become(self, tmp_path: Path, cells: str, expected: np.ndarray | None) -> None:
        table = table_of(tmp_path / "a.csv", "\n".join(["a,b", *(f"{cell},1" for cell in cells.split()), ""]))
        if expected is None:
            assert table.columns[0].cells.to_pylist() == cells.split()
        else:
            assert table.columns[0].numbers is not None
            assert bits(table.columns[0].numbers) == bits(expected)

    def test_spaces_and_tabs_around_numbers_are_nothing(self, tmp_path: Path) -> None:
        table = table_of(tmp_path / "a.csv", "a;b\n 1;\t1.5 \n2\t ; 2\n")
        assert [column.cells.tolist() for column in table.columns if isinstance(column.cells, np.ndarray)] == [
            [1, 2],
            [1.5, 2],
        ]

    def test_a_column_that_is_named_has_numbers_and_no_codes(self, tmp_path: Path) -> None:
        table = table_of(tmp_path / "a.csv", f"a\n01234\n{'0' * 6000}7\n-00\n", only=["a"])
        assert table.columns[0].numbers is not None
        assert bits(table.columns[0].numbers) == bits(np.array([1234, 7, 0]))
        table = table_of(tmp_path / "a.csv", f"a\n01.5\n{'0' * 6000}7\n", only=["a"])
        assert table.columns[0].numbers is not None
        assert table.columns[0].numbers.tolist() == [1.5, 7]

    def test_codes_are_no_header(self, tmp_path: Path) -> None:
        table = table_of(tmp_path / "a.csv", "01234,5\n01235,6\n")
        assert (table.header, table.rows) == (False, 2)
        assert table_of(tmp_path / "a.csv", "01234,x\n01235,6\n", only=["1"]).rows == 2

    @pytest.mark.parametrize("text", ["x" * 1000, "a\n" + "1" * 1000, '"' + "\n1" * 10 + "y" * 1000])
    def test_a_line_without_end_is_not_read_to_its_end(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
    ) -> None:
        monkeypatch.setattr(csv_text, "LONGEST_LINE", 500)
        with pytest.raises(CommandError, match=r"line \d+ has more than 500 bytes; it is no line of a table"):
            table_of(tmp_path / "a.csv", text)

    @pytest.mark.parametrize(
        ("only", "message"),
        [
            (["c"], "has no column 'c'; its columns are 'a', 'b', 'b'"),
            (["b"], "has 2 columns named 'b'"),
            (["a"], "line 2, column a: 'x' is not a number"),
            ([], "no column of numbers"),
        ],
    )
    def test_columns_errors(self, tmp_path: Path, only: list[str], message: str) -> None:
        with pytest.raises(CommandError) as caught:
            table_of(tmp_path / "a.csv", "a,b,b\nx,1,2\n", only=only)
        assert message in str(caught.value)


names = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6).filter(lambda s: not _number(s))
doubles = st.floats(width=64, allow_nan=True)


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@st.composite
def tables(draw: st.DrawFn) -> Table:
    rows = draw(st.integers(1, 5))
    columns = [Column(draw(names), np.array(draw(st.lists(doubles, min_size=rows, max_size=rows))))]
    for _ in range(draw(st.integers(0, 3))):
        name = draw(names)
        if draw(st.booleans()):
            columns.append(Column(name, draw(st.lists(names, min_size=rows, max_size=rows))))
        else:
            wide = draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=rows, max_size=rows))
            columns.append(Column(name, np.array(wide, np.int64)))
    columns = draw(st.permutations(columns))
    header = draw(st.booleans())
    if not header:
        columns = [Column(str(i + 1), column.cells) for i, column in enumerate(columns)]
    return Table(tuple(columns), header, Dialect(",", draw(st.sampled_from(["\n", "\r\n"])), draw(st.booleans())))


CELLS = (
    *("0", "-0", "+0", "1", "-1", "+5", "00", "007", "-007", "0.5", "-0.5", "00.5", ".5", "5.", "1e5", "0e5", "1e-999"),
    *(
        "1e999",
        "nan",
        "NaN",
        "-nan",
        "nan(1)",
        "inf",
        "-Infinity",
        "0x1F",
        "0X1f",
        "-0x1",
        "1_000",
        " 2",
        "2 ",
        "\t3",
        "",
    ),
    *("9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551615"),
    *("18446744073709551616", "1" * 400, "x", "-", "+", ".", "e5", "1e", "1e+", "0.0", "-0.0", "2024-01-01"),
)


class TestSplitting:
    """pyarrow splits what it splits as the strict reader does; all else is the strict reader's."""

    @settings(deadline=None, max_examples=1000)
    @given(st.text(st.sampled_from('",\n\r1a ;\0'), max_size=24), st.sampled_from([1, 5, 1 << 22]))
    @example('a,"b ""c"" d"\n"1,\n2",3', 1)
    @example('a\n"1"2\n', 1)
    @example('a\n"1\n2\n', 1)
    @example("a,b\n1,2\n3\n", 1)
    @example('""\n1', 1)
    @example("a\r\n1\r2", 1)
    @example(";\r\r;", 1)
    @example("a,\ufeff\n\n,\n", 1)
    @example("a,b\n1,2\n3,4\n5,6", 5)
    def test_both_ways_agree(self, text: str, block: int) -> None:
        source = csv_text.Source(Path("a.csv"), text.encode())
        with mock.patch.object(csv_text, "BLOCK", block):
            split = source._split()
        if split is not None:
            rows = [row for _, row in source.rows()]
            assert [cells.to_pylist() for cells in split] == [list(cells) for cells in zip(*rows, strict=True)]

    @settings(deadline=None, max_examples=300)
    @given(st.lists(st.sampled_from(CELLS), min_size=1, max_size=4), st.booleans())
    @example(["+5", "7"], False)
    @example(["0x1F", "1"], True)
    @example(["18446744073709551615", "0"], False)
    @example(["1e999"], False)
    @example(["-inf", "0.5"], False)
    @example(["1e-999", "0"], False)
    def test_usual_numbers_are_what_a_closer_look_finds(self, cells: list[str], named: bool) -> None:
        text = "".join(f"{cell},x\n" for cell in cells)
        source = csv_text.Source(Path("a.csv"), text.encode())
        column = source.columns()[0]
        found = []
        for usual in (numerals._usual_numbers, lambda cells: None):
            with mock.patch.object(numerals, "_usual_numbers", usual):
                try:
                    numbers = numerals.numbers_of(column, csv_files._Cell(source, 0, "a").error, named, None)
                except CommandError as error:
                    found.append(str(error))
                else:
                    found.append(None if numbers is None else bits(numbers))
        assert found[0] == found[1]

    @given(st.lists(st.text("+-0.1a \t", max_size=4), max_size=8), st.integers(0, 3))
    @example(["+", ""], 0)
    @example(["1", "-0"], 0)
    @example(["01", "1"], 1)
    @example(["", ""], 0)
    def test_a_plus_and_digits_behind_a_zero_are_seen_at_every_place(self, cells: list[str], skipped: int) -> None:
        found = numerals._begin_oddly(pyarrow.array(cells, pyarrow.string()).slice(skipped))
        assert found == any(re.match(r"[+ \t](?!a)|-?0[^-+. \t]", cell) is not None for cell in cells[skipped:])

    @settings(deadline=None, max_examples=1000)
    @given(
        st.lists(st.sampled_from(CELLS) | st.text("019+-.eE \tnaify:", max_size=6), min_size=1, max_size=12),
        st.integers(0, 3),
        st.booleans(),
    )
    @example(["", "x", "5"], 0, True)
    @example(["2024-01-01", "+inf"], 0, True)
    @example(["2024-01-01", "1234e-5"], 0, True)
    @example(["x", "01", "1"], 2, True)
    def test_no_number_among_words_is_missed(self, cells: list[str], skipped: int, few: bool) -> None:
        chunk = pyarrow.array(cells, pyarrow.string()).slice(skipped)
        with mock.patch.object(numerals, "_SOME", 1 if few else 1000):  # which tell where others are looked at
            places = numerals.telling_places(pyarrow.chunked_array([chunk]))
        assert numerals.has_number(chunk, places) == numerals._has_number(chunk)

    def test_words_need_no_closer_look(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fit = numerals.Pattern.fit
        cells = [word for i in range(2000) for word in (f"id{i}", f"2024-01-{i}", f"{i:05}", f"{i}:30", f"{i} m", "")]
        seen: list[int] = []
        monkeypatch.setattr(numerals.Pattern, "fit", lambda self, cells: seen.append(len(cells)) or fit(self, cells))
        column = pyarrow.chunked_array([cells[:-6] + ["x"] * 1000])
        assert not numerals.has_number(column.chunk(0), numerals.telling_places(column))
        assert sum(seen) < 2 * len(cells) // 16

    def test_usual_numbers_need_no_closer_look(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(numerals.Pattern, "fit", lambda pattern, cells: pytest.fail("a look at each cell"))
        text = "a,b,c\n" + "".join(f"{i},-0.{i},{i}e5\n" for i in range(1, 3000))
        source = csv_text.Source(Path("a.csv"), text.encode())
        with mock.patch.object(csv_text, "BLOCK", 5000):
            columns = [cells.slice(1) for cells in source.columns()]
        assert len(columns[0].chunks) > 1
        kinds = [numerals.numbers_of(cells, None, False, None).dtype for cells in columns]  # type: ignore[arg-type]
        assert kinds == [np.int64, np.float64, np.float64]

    @pytest.mark.parametrize(
        ("text", "fast"),
        [
            ("a,b\n1,2\n", True),
            ('a,"b, c"\r\n"x ""y"" z","1\n2"\r\n', True),
            ('"","x"\n1,2', True),
            ('"",""\n1,2', False),
            ('a\n5" pipe\n', False),
            ('a\n"1"2\n', False),
            ('a\n"1\n', False),
            ("a\n\n1\n", False),
            ("a,b\n1\n", False),
            ("a\n" + "x" * 200_000, False),
        ],
    )
    def test_what_is_plain_is_split_by_pyarrow(self, text: str, fast: bool) -> None:
        assert (csv_text.Source(Path("a.csv"), text.encode())._split() is not None) is fast


USUAL = {
    "integers": ("1", "-20", "300", "0", "-7"),
    "floats": (
        "0.5",
        "-0.25",
        "3",
        "1e-05",
        "0.000",
        "-0",
        "-0.0",
        "1e-300",
        "nan",
        "5.5e3",
        "0." + "0" * 210 + "1e-99",
    ),
    "words": ("x", "name 1", "01", "+ 5", " y", "-00", "e-300", "0", "", "2024-01-01", "\u00e4"),
    "any": CELLS,
}


@st.composite
def numbers_and_words(draw: st.DrawFn) -> str:
    """Draw the text of a table whose columns are what pyarrow may read without their text, or nearly so."""
    rows = draw(st.integers(1, 6))
    delimiter, end = draw(st.sampled_from(",,;\t")), draw(st.sampled_from(["\n", "\n", "\r\n"]))
    columns = []
    for kind in draw(st.lists(st.sampled_from([*USUAL][:3]), min_size=1, max_size=3)):
        cells = draw(st.lists(st.sampled_from(USUAL[kind]), min_size=rows, max_size=rows))
        if draw(st.integers(0, 3)) == 0:
            cells[draw(st.integers(0, rows - 1))] = draw(st.sampled_from(CELLS))
        columns.append(cells)
    if draw(st.integers(0, 3)) == 0:
        around = st.sampled_from(['"{}"', '"{}"', "{}", '"{}, 01"', '"a ""{}"""', '"{};+"', '"{}\n1"'])
        columns = [[draw(around).format(cell) for cell in cells] for cells in columns]
    lines = [delimiter.join(cells) for cells in zip(*columns, strict=True)]
    if draw(st.integers(0, 9)) == 0:
        odd = ["", "1", "1,2,3,4", '"1"', "1\r", '"', '1"', "\ufeff1"]
        lines.insert(draw(st.integers(0, rows)), draw(st.sampled_from(odd)))
    head = draw(st.sampled_from(["", "\ufeff"]))
    if draw(st.booleans()):
        head += delimiter.join(draw(st.sampled_from(["abc", [" a", "+b", "0c"]]))[: len(columns)]) + end
    return head + end.join(lines) + draw(st.sampled_from(["", end, end + end]))


@contextmanager
def small_blocks(block: int, at_once: int = 1 << 17) -> Iterator[None]:
    """Have files read, and searched, so many bytes at a time, and few of them taken as samples."""
    with (
        mock.patch.multiple(csv_numbers, _AT_ONCE=at_once, _SAMPLES=2, _SAMPLE=16, BLOCK=block),
        mock.patch.object(csv_files, "BLOCK", block),
        mock.patch.object(csv_text, "BLOCK", block),
    ):
        yield


GAPS = ("", "", "", "1", "-2", "0.5", "2e3", "x", "01", str(2**63))


class TestBlocks:
    """A file that is read block by block has the columns that it has as a whole."""

    def in_blocks(self, path: Path, block: int, missing: str | None) -> list[tuple[int, str, bytes]]:
        with (
            mock.patch.object(csv_files, "_LEAST_BLOCK", block),
            csv_files.open_blocks(path, 1, "yes", None, missing) as text,
        ):
            blocks = [cells for _, cells in text.blocks(Place())]
            return [
                (i, str(dtype), b"".join(each[i].tobytes() for each in blocks)) for i, dtype in text.numbers.items()
            ]

    def as_a_whole(self, path: Path, missing: str | None) -> list[tuple[int, str, bytes]]:
        columns = enumerate(read_table(path, header="yes", missing=missing).columns)
        found = [(i, column.numbers) for i, column in columns]
        return [(i, str(cells.dtype), cells.tobytes()) for i, cells in found if cells is not None]

    @settings(deadline=None, max_examples=500)
    @given(
        st.lists(st.sampled_from(GAPS), min_size=1, max_size=12),
        st.integers(2, 64),
        st.sampled_from([None, "0", "nan", "-1.5", str(2**64 - 1), str(2**64), "1e400"]),
    )
    def test_gaps(self, cells: list[str], block: int, missing: str | None) -> None:
        """Whatever is empty, and wherever a block begins; both ways refuse the same files."""
        found: list[Any] = []
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.csv"
            path.write_text("a,b\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells)))
            for way in (lambda: self.in_blocks(path, block, missing), lambda: self.as_a_whole(path, missing)):
                try:
                    found.append(way())
                except CommandError:
                    found.append("refused")
        assert found[0] == found[1]


class TestUsualColumns:
    """Numbers that are read without their text are those that a closer look finds, and so are errors."""

    def found(self, path: Path, **options: Any) -> object:
        try:
            table = read_table(path, **options)
        except CommandError as error:
            return str(error)
        cells = [column.cells for column in table.columns]
        return table.header, [
            (bits(column), column.dtype) if isinstance(column, np.ndarray) else column.to_pylist() for column in cells
        ]

    def test_a_carriage_return_that_ends_the_header_and_another_line(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_bytes(b"1\r\r\n1")
        assert self.found(path, header="yes") == f"{path}, line 2 is blank; remove it"

    @settings(deadline=None, max_examples=1000)
    @given(
        numbers_and_words(),
        st.sampled_from([1, 2, 7, 1 << 17]),
        st.sampled_from([24, 64, 1 << 20]),
        st.sampled_from(["auto", "yes", "no"]),
        st.data(),
    )
    def test_both_ways_agree(self, text: str, at_once: int, block: int, header: str, data: st.DataObject) -> None:
        columns = len(re.split("[,;\t]", text.split("\n")[0]))
        only = data.draw(st.none() | st.just([str(columns)]) | st.just(["a"]))
        missing = data.draw(st.sampled_from([None, "0"]))
        options = {"header": header, "only": only, "missing": missing}
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = Path(folder) / "a.csv"
            path.write_text(text, encoding="utf-8", newline="")
            with mock.patch.object(csv_files, "_usual", side_effect=csv_text.UnusualError):
                expected = self.found(path, **options)
            with small_blocks(block, at_once):
                assert self.found(path, **options) == expected

    def kinds(self, path: Path, text: str) -> str | None:
        """Return the types of columns that are read without their text; None if a closer look is needed."""
        path.write_text(text, encoding="utf-8", newline="")
        with reading(path) as file:
            try:
                table = csv_files._usual(path, file, "auto", None, None)
            except csv_text.UnusualError:
                return None
        kept = [str(column.numbers.dtype) if column.numbers is not None else "text" for column in table.columns]
        return " ".join(kept)

    @pytest.mark.parametrize(
        ("text", "kinds"),
        [
            ("a,b\n1,x\n2,y\n", "int64 text"),
            ("a,b\n1,0.5\n-2,-0.25", "int64 float64"),
            ("a,b\n0,0.0\n-2,1e-99", "int64 float64"),
            ("a,b\n0,00 5\n-2, x+", "int64 text"),  # odd words, which are counted
            ("a,b\n1,007\n2,008\n", "int64 text"),
            (" a,+b\n1,2\n", "int64 int64"),
            ("1;2.5\n3;4", "int64 float64"),
            ("a;b;c\n0;0;x\n0;-0;y", "int64 int64 text"),
            ("a\tb\tc\n1\t\t2\n3\t\t4\n", "int64 text int64"),
            ("a\n1\nnan\n", "float64"),
            ("a,b\n0,x e-1\n0.5,(y)\n", "float64 text"),
            ("a\r\n1\r\n0\r\n", "int64"),
            ('a\n1\n"2"\n', "int64"),
            ('a,b\n1,"x, 01"\n2,"y"\n', "int64 text"),
            ('"a",b\n1,x\n2,y\n', "int64 text"),
            ("a,b\n-0,-0\n0,-0.5\n", "int64 float64"),
            ("\ufeffa,b\n1,\u00e4\n", "int64 text"),
            ("a\n1\nnan(1)\n", None),
            ("a\n1\ninf\n", None),
            ("a,b\n1,0\n2,1e-100\n", None),  # whose 0 might be another number
            ("a,b\n1,0.5\n2,1E-999\n", None),
            (f"a,b\n1,0.5\n2,0.{'0' * 226}1e-99\n", None),
            ("a\n1\n01\n", None),
            ("a\n1\n+1\n", None),
            ("a\n1\n 1\n", "int64"),
            ("a\n1\n\t1\n", "int64"),
            ("a\n0.5\n 1 \n+2\n", "float64"),
            ("a\n0.5\n +01\n", None),
            ("a\n1.5\n-00.5", None),
            ("a\n0x10\n1", None),
            ('a\n1\n"02"\n', None),
            ('a,b\n1,"x\ny"\n', None),
            ('a,b\n1,x"y"\n', None),
            ('a,b\n1,"x\n', None),
            ("a\n1\r2\n", None),
            ("a\n\ufeff1\n2\n", None),
            ("a\nx\n", None),
            ("a\n", None),
            ("a\n1\n\n2\n", None),
            ("\na\n1\n", None),
        ],
    )
    def test_what_is_read_without_its_text(self, tmp_path: Path, text: str, kinds: str | None) -> None:
        for block in (1 << 20, max(map(len, text.encode().split(b"\n"))) + 2):  # at once, and a line at a time
            with small_blocks(block):
                assert self.kinds(tmp_path / "a.csv", text) == kinds

    @pytest.mark.parametrize("cell", ["+1", " 1", "\t1", "01", "-01", "0x1F", "-0x1", "00.5", "0e5", "1.5", "x", ""])
    @pytest.mark.parametrize("others", ["1", "0.5"])
    @pytest.mark.parametrize("at_once", [1, 3, 1 << 18])
    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_what_a_sample_does_not_show(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: str, others: str, at_once: int, end: str
    ) -> None:
        monkeypatch.setattr(csv_numbers, "_SAMPLES", 1)
        monkeypatch.setattr(csv_numbers, "_SAMPLE", 6)
        monkeypatch.setattr(csv_numbers, "_AT_ONCE", at_once)
        for where in (4, 7 if cell else 5):
            lines = [others] * 8
            lines[where] = cell
            kinds = self.kinds(tmp_path / "a.csv", end.join(["a", *lines]))
            if others == "0.5":
                assert kinds == ("float64" if cell in ("1.5", "+1", " 1", "\t1") else None)
            else:
                assert kinds == ("int64" if cell in (" 1", "\t1") else None)

    @pytest.mark.parametrize(
        ("cell", "kinds"),
        [("1", "float64"), ("0", "float64"), ("1e-05", "float64"), ("01", None), ("-0x1", None), ("1e-400", None)],
    )
    def test_what_numbers_with_many_digits_do_not_show(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: str, kinds: str | None
    ) -> None:
        monkeypatch.setattr(csv_numbers, "_SAMPLES", 1)
        monkeypatch.setattr(csv_numbers, "_SAMPLE", 24)
        lines = ["0.123456789"] * 8
        lines[5] = cell
        assert self.kinds(tmp_path / "a.csv", "\n".join(["a", *lines])) == kinds

    @given(
        st.lists(st.text("0012-. +x;,\"'", max_size=5), min_size=1, max_size=6),
        st.sampled_from([",", ";", "\t"]),
        st.integers(0, 3),
        st.sampled_from([1, 3, 1 << 17]),
    )
    def test_codes_are_counted_in_columns_as_in_the_file(
        self, cells: list[str], delimiter: str, skipped: int, at_once: int
    ) -> None:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows([cell, "x"] for cell in cells[skipped:])
        characters = np.frombuffer(b"\n\n" + text.getvalue().encode() + b"\n", np.uint8)
        column = pyarrow.array(cells, pyarrow.string()).slice(skipped)
        with mock.patch.object(csv_numbers, "_AT_ONCE", at_once):
            found, _ = csv_numbers._codes(characters, delimiter, powers_too=True)
            assert csv_numbers._codes_among(column, delimiter) == found

    @pytest.mark.parametrize("more", ['"x"', "\u00e4"])
    def test_what_a_first_piece_does_not_show(self, tmp_path: Path, more: str) -> None:
        with small_blocks(24):
            found = self.kinds(tmp_path / "a.csv", "a,b\n" + "1,x\n" * 10 + f"2,{more}\n")
        assert found == (None if more.startswith('"') else "int64 text")

    def test_what_is_no_text_is_noticed(self, tmp_path: Path) -> None:
        for block in (24, 1 << 20):
            with small_blocks(block), pytest.raises(CommandError, match="line 12: not UTF-8 text but most likely"):
                table_of(tmp_path / "a.csv", b"a,b\n" + b"1,x\n" * 10 + b"2,\xe4\n")

    def test_rows_that_pyarrow_loses_are_noticed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        read = csv_text.read_csv
        monkeypatch.setattr(csv_numbers, "read_csv", lambda *rest, **more: read(*rest, **more).slice(1))
        assert self.kinds(tmp_path / "a.csv", "a\n1\n2\n3\n") is None

    def test_usual_files_are_read_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(csv_files, "content_of", lambda path, file: pytest.fail("a closer look"))
        with small_blocks(64):
            table = table_of(tmp_path / "a.csv", "a,b,c\n" + "".join(f"{i},id{i},0.{i}\n" for i in range(500)))
        assert table.rows == 500
        assert table.numeric == [0, 2]

    def test_cells_that_are_too_long_are_noticed(self, tmp_path: Path) -> None:
        with pytest.raises(CommandError, match=r"field larger than field limit"):
            table_of(tmp_path / "a.csv", f"a\n1.5\n1.{'0' * 140_000}\n")


class TestWriteTable:
    @settings(deadline=None, max_examples=500)
    @given(st.lists(st.floats() | st.floats(1e-5, 1e-3) | st.floats(-2e9, 2e9) | st.integers(-3, 3).map(float)))
    @example([1e-4, 0.00012, 9.9e-05, 999999999.5, 1e9, 1000000000.5, 2.0, -0.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    def test_doubles_are_written_as_python_does(self, values: list[float]) -> None:
        for some in (values, [*values, *[0.1] * (len(values) + 1)]):  # some by pyarrow, too
            assert numerals.texts_of(np.array(some, np.float64)) == [repr(value) for value in some]

    @settings(deadline=None, max_examples=500)
    @given(
        st.integers(1, 3).flatmap(
            lambda n: st.lists(st.lists(st.text("a1,;\t\"\r\n'", max_size=3), min_size=n, max_size=n), min_size=1)
        ),
        st.sampled_from([",", ";", "\t"]),
        st.sampled_from(["\n", "\r\n"]),
        st.booleans(),
    )
    @example([[""], ["a"]], ",", "\n", False)
    @example([["a", "1"], ["b", ""]], ",", "\r\n", False)
    def test_rows_are_written_as_the_standard_library_does(
        self, rows: list[list[str]], delimiter: str, line_end: str, quoted: bool
    ) -> None:
        expected = io.StringIO(newline="")
        quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
        csv.writer(expected, delimiter=delimiter, lineterminator=line_end, quoting=quoting).writerows(rows)
        file = io.BytesIO()
        csv_files._Rows(file, Dialect(delimiter, line_end), None, quoted).write([*zip(*rows, strict=True)])
        assert file.getvalue().decode() == expected.getvalue()

    @settings(deadline=None)
    @given(tables())
    def test_what_is_written_reads_back(self, tmp_path_factory: pytest.TempPathFactory, table: Table) -> None:
        path = tmp_path_factory.mktemp("csv", numbered=True) / "a.csv"
        with path.open("wb") as file:
            write_table(file, table)
        again = read_table(path, "yes" if table.header else "no")
        assert again.header == table.header
        assert again.dialect.mark == table.dialect.mark
        for column, other in zip(table.columns, again.columns, strict=True):
            assert column.name == other.name
            if column.numbers is None:
                assert column.cells == other.cells.to_pylist()
            else:
                assert other.numbers is not None
                np.testing.assert_array_equal(column.numbers, other.numbers, strict=True)
                zeros = column.numbers == 0  # a NaN is a NaN, but zeros have signs
                np.testing.assert_array_equal(np.signbit(column.numbers[zeros]), np.signbit(other.numbers[zeros]))

    @pytest.mark.parametrize("dtype", ["float16", "float32"])
    def test_narrow_types_read_back_through_float64(self, dtype: str) -> None:
        size = np.dtype(dtype).itemsize
        patterns = np.random.default_rng(1).integers(0, 2 ** (8 * size), 20_000, dtype=f"uint{8 * size}")
        values = patterns.view(dtype)
        values = values[np.isfinite(values)]
        back = np.array([float(text) for text in numerals.texts_of(values)]).astype(dtype)
        assert bits(back) == bits(values)

    def test_digits_that_would_round_twice_are_not_used(self) -> None:
        value = np.array([363742205], np.uint32).view(np.float32)
        assert str(value[0]) == "7.038531e-26"
        assert np.float32(float("7.038531e-26")) != value[0]
        assert numerals.texts_of(value) == ["7.038530691851209e-26"]

    def test_layout_is_kept(self, tmp_path: Path) -> None:
        text = '\ufeffday;"a;b";x\r\n1 Jan;"q""q";1\r\n2 Jan;;2\r\n'
        assert text_of(table_of(tmp_path / "a.csv", text)) == text

    def test_arrays_become_columns(self) -> None:
        assert text_of(array_table(np.array([1, 2]))) == "1\n2\n"
        assert text_of(array_table(np.array([[0.5, 2], [3, -0.0]], np.float32))) == "0.5,2.0\n3.0,-0.0\n"
        with pytest.raises(CommandError, match=r"has shape \(0, 2\): without a header and rows nothing"):
            array_table(np.zeros((0, 2)))
        assert array_table(np.zeros((0, 2)), ".parquet").rows == 0
        assert text_of(array_table(np.array([True, False]))) == "1\n0\n"

    def test_many_rows_are_written_in_pieces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(csv_files, "_ROWS_AT_ONCE", 3)
        assert text_of(array_table(np.arange(8))) == "0\n1\n2\n3\n4\n5\n6\n7\n"


class TestTable:
    def test_stacked_finds_a_common_type(self) -> None:
        table = Table((Column("a", np.array([1, 2])), Column("t", ["x", "y"]), Column("b", np.array([0.5, 1]))), True)
        assert bits(table.stacked("a.csv", "choose")) == bits(np.array([[1, 0.5], [2, 1]]))

    @pytest.mark.parametrize("value", [2**53 + 1, 2**63 - 1])
    def test_stacked_loses_no_digits(self, value: int) -> None:
        table = Table((Column("id", np.array([1, value])), Column("b", np.array([0.5, 1]))), True)
        with pytest.raises(CommandError, match=f"a.csv: column 'id', row 2: {value} has no exact float64"):
            table.stacked("a.csv", "choose")

    def test_large_integers_that_fit_are_stacked(self) -> None:
        table = Table((Column("id", np.array([2**62, -(2**63)])), Column("b", np.array([0.5, 0.5]))), True)
        assert table.stacked("a.csv", "choose")[:, 0].tolist() == [2.0**62, -(2.0**63)]


class TestSummary:
    def test_statistics_of_several_pieces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dmlgpu.cli.summary._AT_ONCE", 4)
        found = statistics(np.array([[np.nan] * 5, [3, -2, np.nan, np.inf, 0]], np.float32))
        assert (found.least, found.greatest, found.nans) == (-2, np.inf, 6)

    def test_statistics_of_nothing(self) -> None:
        assert statistics(np.array([], np.int8)).least is None
        assert statistics(np.array([np.nan])).greatest is None

    @pytest.mark.parametrize(
        ("array", "lines"),
        [
            (np.arange(10, dtype=np.int8), ["first  0  1  2", "last   7  8  9", "min    0", "max    9"]),
            (np.array([1.5, np.nan]), ["first  1.5  nan", "min    1.5", "max    1.5", "NaN    1 of 2"]),
            (np.arange(4), ["first  0  1  2", "last   3", "min    0", "max    3"]),
            (np.float64(0.1 + 0.2).reshape(()), ["first  0.3", "min    0.3", "max    0.3"]),
            (np.zeros((0, 2)), ["no elements"]),
        ],
    )
    def test_arrays(self, array: np.ndarray, lines: list[str]) -> None:
        text = summarize("cumsum of a.npy", array, "a device")
        head = [f"cumsum of a.npy: {array.dtype} {array.shape}", "on a device", ""]
        assert text.splitlines() == [*head, *lines, "", "-o FILE writes the result."]

    def test_tables(self) -> None:
        table = Table((Column("day", ["x", "y"]), Column("rain", np.array([0.25, np.nan]))), True)
        assert describe(table) == "2 rows of 2 columns, 1 of them kept as it is"
        assert summarize("cumsum of a.csv", table, "a device").splitlines() == [
            "cumsum of a.csv: 2 rows of 2 columns",
            "on a device",
            "",
            "column  type     first  last  min   max   NaN",
            "rain    float64  0.25   nan   0.25  0.25  1",
            "",
            "kept as text: day",
            "",
            "-o FILE writes the result.",
        ]
