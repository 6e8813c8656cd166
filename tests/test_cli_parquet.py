"""Tables in .parquet files: what is processed, what is kept, what is refused, and the ways to other formats."""

from __future__ import annotations

import datetime
import os
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dmlgpu import reference
from dmlgpu.cli import operators
from dmlgpu.cli.console import CommandError
from dmlgpu.cli.parquet_files import read_table, table_bytes, whole_bytes

from .cli_runner import Run, bits, one_line, runner, same


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in an empty folder of its own."""
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


KEPT = {
    "day": pa.array([datetime.date(2024, 1, 1), None, datetime.date(2024, 1, 3)]),
    "who": pa.array(["a", "b,c", None]).dictionary_encode(),
    "when": pa.array([0, 1, None], pa.timestamp("us", "Europe/Berlin")),
    "price": pa.array([Decimal("1.10"), None, Decimal("2.20")]),
    "many": pa.array([[1, 2], [], None]),
    "flag": pa.array([True, None, False]),
}
"""Columns that no command changes."""


def save(name: str, columns: dict[str, pa.Array], **options: object) -> None:
    pq.write_table(pa.table(columns).replace_schema_metadata({"of": "somebody"}), name, **options)


class TestNumbers:
    @pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "uint64", "float16", "float32", "float64"])
    @pytest.mark.parametrize("command", ["cumsum", "round"])
    def test_columns_have_the_bits_of_arrays(self, run: Run, dtype: str, command: str) -> None:
        x = (np.random.default_rng(3).random(300) * 3).astype(dtype)
        save("x.parquet", {"x": pa.array(x), **{name: cells.take([0, 1, 2] * 100) for name, cells in KEPT.items()}})
        status, out, _ = run(command, "x.parquet", "-o", "y.parquet")
        assert status == 0
        assert out.startswith("wrote y.parquet: ")
        if command == "round":
            expected = x if x.dtype.kind != "f" else reference.round(x, "half_even")
        else:
            wide = x if x.dtype.kind == "f" else x.astype("int64" if x.dtype.kind == "i" else "uint64")
            expected = reference.cumulative(wide, "sum", axis=0)
        assert same(pq.read_table("y.parquet")["x"].to_numpy(), expected)

    def test_everything_else_stays(self, run: Run) -> None:
        save("x.parquet", {"first": KEPT["day"], "x": pa.array([1.5, 2, 3]), **KEPT}, row_group_size=2)
        assert run("cumsum", "x.parquet", "-o", "x.parquet").status == 0
        old, new = pa.table({"first": KEPT["day"], **KEPT}), pq.read_table("x.parquet")
        assert new.column_names == ["first", "x", *KEPT]
        assert new["x"].to_pylist() == [1.5, 3.5, 6.5]
        assert new.drop_columns(["x"]).equals(old)
        assert new.schema.metadata == {b"of": b"somebody"}
        assert os.listdir() == ["x.parquet"]

    def test_columns_are_chosen_by_name(self, run: Run) -> None:
        save(
            "x.parquet", {"a": pa.array([1, 2, 3]), "b, c": pa.array([1, 2, 3]), "flag": pa.array([True, False, True])}
        )
        assert run("cumsum", "x.parquet", "-o", "y.parquet", "--columns", '"b, c",flag').status == 0
        found = pq.read_table("y.parquet").to_pydict()
        assert found == {"a": [1, 2, 3], "b, c": [1, 3, 6], "flag": [1, 1, 2]}

    @pytest.mark.parametrize("index", [pd.Index([5, 6, 8], name="year"), pd.Index([5, 6, 8]), pd.RangeIndex(3)])
    @pytest.mark.parametrize("options", [(), ("--memory", "1MiB"), ("--axis", "1")])
    def test_the_index_of_pandas_stays(self, run: Run, index: pd.Index, options: tuple[str, ...]) -> None:
        pd.DataFrame({"x": [0.5, 1.5, 2.5], "n": [1, 2, 3]}, index).to_parquet("x.parquet")
        assert run("cumsum", "x.parquet", "-o", "y.parquet", *options).status == 0
        found = pd.read_parquet("y.parquet")
        assert found.index.equals(index)
        assert found.index.name == index.name
        down = {"x": [0.5, 2.0, 4.5], "n": [1, 3, 6]}
        across = {"x": [0.5, 1.5, 2.5], "n": [1.5, 3.5, 5.5]}
        assert found.to_dict("list") == (across if "--axis" in options else down)

    def test_the_index_of_pandas_is_processed_if_it_is_named(self, run: Run) -> None:
        pd.DataFrame({"k": ["a", "b"]}, pd.Index([5, 6], name="year")).to_parquet("x.parquet")
        status, _, err = run("cumsum", "x.parquet")
        assert status == 2
        assert "has no column of numbers; its columns are 'k' of " in one_line(err)
        assert "'year' of int64, the index, which --columns may name" in one_line(err)
        assert run("cumsum", "x.parquet", "-o", "y.parquet", "--columns", "year").status == 0
        assert pq.read_table("y.parquet")["year"].to_pylist() == [5, 11]

    @pytest.mark.parametrize(
        "said", [b"", b"{", b"[]", b"{}", b'{"index_columns": 3}', b'{"index_columns": [{}, 1]}', b"\xff"]
    )
    def test_what_says_no_index_is_nothing(self, run: Run, said: bytes) -> None:
        pq.write_table(pa.table({"x": [1, 2]}).replace_schema_metadata({"pandas": said}), "x.parquet")
        assert run("cumsum", "x.parquet", "-o", "y.parquet").status == 0
        assert pq.read_table("y.parquet")["x"].to_pylist() == [1, 3]

    def test_along_rows(self, run: Run) -> None:
        save("x.parquet", {"a": pa.array([1, 2]), "k": pa.array(["x", "y"]), "b": pa.array([0.5, 1])})
        assert run("cumsum", "x.parquet", "-o", "y.parquet", "--axis", "1").status == 0
        assert pq.read_table("y.parquet").to_pydict() == {"a": [1, 2], "k": ["x", "y"], "b": [1.5, 3]}

    @pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "float32", "float64"])
    @pytest.mark.parametrize("missing", ["0", "5", "nan", "0.1"])
    def test_empty_cells_get_a_number_of_their_type(self, tmp_path: Path, dtype: str, missing: str) -> None:
        path = tmp_path / "x.parquet"
        save(str(path), {"x": pa.array([1, None, 3], dtype), "k": pa.array([None, "a", "b"])})
        if "int" in dtype and missing in ("nan", "0.1"):
            with pytest.raises(CommandError, match=f"--missing {missing}: .* has the type {dtype}, which has no such"):
                read_table(path, None, missing)
        else:
            table = read_table(path, None, missing)
            assert bits(table.columns[0].cells) == bits(np.array([1, missing, 3]).astype(dtype))
            assert table.columns[1].cells.to_pylist() == [None, "a", "b"]

    @pytest.mark.parametrize(
        ("dtype", "missing"), [("uint8", "-1"), ("int8", "128"), ("float16", "1e6"), ("bool", "2"), ("int64", "1e3")]
    )
    def test_empty_cells_get_no_number_beyond_their_type(self, tmp_path: Path, dtype: str, missing: str) -> None:
        save(str(tmp_path / "x.parquet"), {"x": pa.array([1, None, 0]).cast(dtype.replace("float16", "halffloat"))})
        with pytest.raises(CommandError, match="which has no such number"):
            read_table(tmp_path / "x.parquet", ["x"], missing)

    @pytest.mark.parametrize(("options", "gap"), [([], 0), (["--reverse"], 3)])
    def test_include_initial_adds_a_row(self, run: Run, options: list[str], gap: int) -> None:
        save("x.parquet", {"x": pa.array([1, 2, 3]), **KEPT})
        assert run("cumsum", "x.parquet", "-o", "y.parquet", "--include-initial", *options).status == 0
        table = pq.read_table("y.parquet")
        assert table["x"].to_pylist() == ([6, 5, 3, 0] if options else [0, 1, 3, 6])
        for name, cells in KEPT.items():
            values = cells.to_pylist()
            assert table[name].to_pylist() == [*values[:gap], None, *values[gap:]]

    def test_the_summary(self, run: Run) -> None:
        save("x.parquet", {"x": pa.array([1.5, float("nan")]), "k": pa.array(["a", "b"])})
        out = run("cumsum", "x.parquet").out
        assert out.startswith("cumsum along axis 0 of x.parquet: 2 rows of 2 columns\n")
        assert "\nx       float64  1.5    nan   1.5  1.5  1\n\nkept as text: k\n" in out


class TestOtherFormats:
    def test_to_csv(self, run: Run) -> None:
        save("x.parquet", {"x": pa.array([1, 2, 3]), "day": KEPT["day"], "who": KEPT["who"], "price": KEPT["price"]})
        assert run("cumsum", "x.parquet", "-o", "y.csv").status == 0
        assert Path("y.csv").read_text() == 'x,day,who,price\n1,2024-01-01,a,1.10\n3,,"b,c",\n6,2024-01-03,,2.20\n'

    def test_what_has_no_text_is_refused(self, run: Run) -> None:
        save("x.parquet", {"x": pa.array([1, 2, 3]), "b": pa.array([b"\xff", b"", b""])})
        status, out, err = run("cumsum", "x.parquet", "-o", "y.csv")
        assert (status, out) == (2, "")
        assert "column 'b' has the type binary, no text for a .csv file; write .parquet" in one_line(err)
        assert os.listdir() == ["x.parquet"]

    def test_from_csv(self, run: Run) -> None:
        Path("x.csv").write_text("day,x,n\n1 Jan,0.5,18446744073709551615\n2 Jan,1,0\n")
        assert run("cumsum", "x.csv", "-o", "y.parquet").status == 0
        table = pq.read_table("y.parquet")
        assert table.schema.types == [pa.string(), pa.float64(), pa.uint64()]
        assert table.to_pydict() == {"day": ["1 Jan", "2 Jan"], "x": [0.5, 1.5], "n": [2**64 - 1, 2**64 - 1]}

    def test_to_and_from_arrays(self, run: Run) -> None:
        np.save("x.npy", np.array([[1.5, 2], [3, 4]], np.float32))
        assert run("cumsum", "x.npy", "--axis", "0", "-o", "y.parquet").status == 0
        assert pq.read_table("y.parquet").to_pydict() == {"1": [1.5, 4.5], "2": [2, 6]}
        assert run("cumsum", "y.parquet", "-o", "z.npy").status == 0
        assert same(np.load("z.npy"), np.array([[1.5, 2], [6, 8]], np.float32))


BAD = {
    "truncated": ("cumsum cut.parquet", "cut.parquet is damaged, or not a Parquet file that pyarrow reads: "),
    "damaged inside": ("cumsum bits.parquet", "bits.parquet is damaged, or not a Parquet file that pyarrow reads: "),
    "another format": ("cumsum text.parquet", "text.parquet is damaged, or not a Parquet file that pyarrow reads: "),
    "empty": ("cumsum empty.parquet", "empty.parquet is empty"),
    "no rows": ("cumsum none.parquet", "none.parquet has no rows"),
    "no numbers": ("cumsum words.parquet", "has no column of numbers; its columns are 'k' of string"),
    "null": ("cumsum null.parquet", "null.parquet, row 2, column x: the cell is empty (null); --missing nan carries"),
    "missing of another type": (
        "cumsum null.parquet --missing 1e400",
        "--missing 1e400: null.parquet, column x has the type double, which has no such number; give another",
    ),
    "missing that is too small": (
        "cumsum null.parquet --missing 1e-999",
        "--missing 1e-999: null.parquet, column x has the type double, which has no such number; give another",
    ),
    "column of text": ("cumsum words.parquet --columns k", "column k: its type is string, not one of numbers; leave"),
    "rounding bool": (
        "round flags.parquet --columns f",
        "flags.parquet: a column that --columns names has dtype bool, which has nothing to round: convert it with --dt",
    ),
    "unknown column": ("cumsum words.parquet --columns z", "--columns: words.parquet has no column 'z'; its columns"),
    "header": ("cumsum x.parquet --header no", "--header is for .csv files; x.parquet says itself what its columns"),
    "three dimensions": ("cumsum cube.npy --axis 0 -o y.parquet", "a .parquet file has 1 or 2 dimensions while cube"),
    "no columns": ("round nothing.npy -o y.parquet", "a .parquet file needs at least one column; write .npy"),
    "initial column": ("cumsum x.parquet --axis 1 --include-initial", "would add a column without a name to x.parquet"),
    "too wide for one type": (
        "cumsum wide.parquet -o y.npy",
        "column 'n', row 1: 9007199254740993 has no exact float64",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(run: Run, case: str) -> None:
    save("x.parquet", {"x": pa.array([1, 2]), "y": pa.array([3, 4])})
    save("null.parquet", {"x": pa.array([1.5, None]), "y": pa.array([3, 4])})
    save("words.parquet", {"k": pa.array(["a"])})
    save("flags.parquet", {"f": pa.array([True])})
    save("none.parquet", {"x": pa.array([], pa.int64())})
    save("wide.parquet", {"n": pa.array([2**53 + 1]), "x": pa.array([0.5])})
    damaged = {"x": pa.array(np.random.default_rng(1).random(1000))}
    save("bits.parquet", damaged, write_page_checksum=True)
    whole = Path("bits.parquet").read_bytes()
    Path("bits.parquet").write_bytes(whole[:4000] + bytes([whole[4000] ^ 1]) + whole[4001:])
    Path("cut.parquet").write_bytes(whole[:-9])
    Path("text.parquet").write_text("x\n1\n")
    Path("empty.parquet").touch()
    np.save("cube.npy", np.ones((2, 2, 2), np.float32))
    np.save("nothing.npy", np.ones((2, 0), np.float32))
    before = sorted(os.listdir())
    command, message = BAD[case]
    status, out, err = run(*command.split(), *([] if "-o" in command else ["-o", "out.parquet"]))
    assert (status, out) == (2, "")
    assert message in one_line(err)
    assert sorted(os.listdir()) == before


def test_pages_that_are_written_have_checksums(run: Run) -> None:
    np.save("x.npy", np.random.default_rng(1).random(1000))
    assert run("cumsum", "x.npy", "-o", "y.parquet").status == 0
    whole = Path("y.parquet").read_bytes()
    Path("y.parquet").write_bytes(whole[:4000] + bytes([whole[4000] ^ 1]) + whole[4001:])
    assert "y.parquet is damaged" in one_line(run("cumsum", "y.parquet").err)


@pytest.mark.parametrize(
    "options", [(), ("-o", "y.parquet"), ("--memory", "1MiB"), ("--memory", "1MiB", "-o", "y.npy")]
)
def test_a_file_without_row_groups_has_no_rows(run: Run, options: tuple[str, ...]) -> None:
    schema = pa.schema([("name", pa.string()), ("x", pa.float64())])
    pq.ParquetWriter("x.parquet", schema).close()
    status, out, err = run("cumsum", "x.parquet", *options)
    assert (status, out) == (2, "")
    assert "x.parquet has no rows" in one_line(err)


ROWS = pa.schema([("x", pa.float64()), ("s", pa.string())])


def save_groups(name: str, *groups: list[float]) -> None:
    """Save a table with a column of text, in row groups that can be empty."""
    with pq.ParquetWriter(name, ROWS) as written:
        for group in groups:
            written.write_table(pa.table({"x": group, "s": ["ab"] * len(group)}, ROWS))


@pytest.mark.parametrize(
    "options", [(), ("-o", "y.parquet"), ("--memory", "1MiB"), ("--memory", "1MiB", "-o", "y.npy")]
)
def test_a_file_with_an_empty_row_group_has_no_rows(run: Run, options: tuple[str, ...]) -> None:
    save_groups("x.parquet", [])
    assert pq.read_metadata("x.parquet").num_row_groups == 1
    status, out, err = run("cumsum", "x.parquet", *options)
    assert (status, out) == (2, "")
    assert "x.parquet has no rows" in one_line(err)


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("groups", [([1.0, 2.0], [], [4.0]), ([], [1.0, 2.0, 4.0], []), ([1.0], [], [], [2.0, 4.0])])
def test_empty_row_groups_among_others(
    run: Run, monkeypatch: pytest.MonkeyPatch, groups: tuple[list[float], ...], is_large: bool
) -> None:
    save_groups("x.parquet", *groups)
    assert pq.read_metadata("x.parquet").num_row_groups == len(groups)
    monkeypatch.setattr(operators, "_is_large", lambda *_: is_large)
    assert run("cumsum", "x.parquet", "-o", "y.parquet", "--memory", "1MiB").status == 0
    assert pq.read_table("y.parquet").to_pydict() == {"x": [1, 3, 7], "s": ["ab"] * 3}


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("options", [(), ("--include-initial",)])
def test_what_is_said_of_columns_stays(
    run: Run, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], is_large: bool
) -> None:
    fields = [
        pa.field("x", pa.int32(), nullable=False, metadata={"unit": "mm"}),
        pa.field("s", pa.string(), nullable=False, metadata={"of": "names"}),
        pa.field("t", pa.string()),
    ]
    schema = pa.schema(fields, {"of": "somebody"})
    pq.write_table(pa.table({"x": [1, 2], "s": ["a", "b"], "t": ["c", None]}, schema), "x.parquet")
    monkeypatch.setattr(operators, "_is_large", lambda *_: is_large)
    assert run("cumsum", "x.parquet", "-o", "y.parquet", "--memory", "1MiB", *options).status == 0
    old, new = pq.read_schema("x.parquet"), pq.read_table("y.parquet")
    expected = [old.field("x").with_type(pa.int64()), old.field("s").with_nullable(bool(options)), old.field("t")]
    assert new.schema.equals(pa.schema(expected, old.metadata), check_metadata=True)
    assert new["x"].to_pylist() == [0, 1, 3][not options :]
    assert new["s"].to_pylist() == [None, "a", "b"][not options :]


def test_a_damaged_directory_is_an_error(tmp_path: Path) -> None:
    """pyarrow ends the process for some of these, so another one tries them."""
    pq.write_table(pa.table({"x": [1, 2, 3], "s": ["a", None, "b"]}), tmp_path / "x.parquet")
    code = """if True:
        import sys
        from pathlib import Path
        from dmlgpu.cli.console import CommandError
        from dmlgpu.cli.parquet_files import table_bytes, whole_bytes

        whole = Path("x.parquet").read_bytes()
        size = int.from_bytes(whole[-8:-4], "little")
        refused = 0
        for size_of in table_bytes, whole_bytes:
            for place in range(len(whole) - 8 - size, len(whole) - 8):
                damaged = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
                Path("y.parquet").write_bytes(damaged)
                try:
                    size_of(Path("y.parquet"))
                except CommandError:
                    refused += 1
        print(refused > 0)
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@pytest.mark.parametrize("rows", [-13, 0, 1, 3])
def test_a_wrong_number_of_rows_is_damage(run: Run, rows: int) -> None:
    save("x.parquet", {"x": pa.array([1, 2])})
    before, directory = b"\x16\x04\x19", Path("x.parquet").read_bytes()  # how Thrift writes 2, in front of a list
    said = bytes([0x16, 2 * rows if rows >= 0 else -2 * rows - 1, 0x19])
    Path("y.parquet").write_bytes(directory.replace(before, said, 1))
    assert pq.ParquetFile("y.parquet").metadata.num_rows == rows
    for options in ([], ["-o", "z.parquet"], ["-o", "z.parquet", "--memory", "1MiB"]):
        status, _, err = run("cumsum", "y.parquet", *options)
        assert status == 2
        assert re.search(rf"y\.parquet is damaged.*: it says that it has {rows} rows?, and has 2$", one_line(err)), err


def test_every_truncation_is_an_error(run: Run) -> None:
    save("x.parquet", {"x": pa.array([1, 2, 3])})
    whole = Path("x.parquet").read_bytes()
    for length in range(1, len(whole), 7):
        Path("y.parquet").write_bytes(whole[:length])
        assert "y.parquet is damaged, or not a Parquet file" in one_line(run("cumsum", "y.parquet").err)


MANY = 50_000
REPEATED = {
    "float64": pa.array(np.ones(MANY)),
    "int8": pa.array(np.ones(MANY, np.int8)),
    "bool": pa.array(np.ones(MANY, bool)),
    "decimal": pa.array([Decimal("1.5")] * MANY),
    "time": pa.array([datetime.datetime(2024, 1, 1)] * MANY, pa.timestamp("ns")),
    "text": pa.array(["a word" * 50] * MANY),
    "long text": pa.array(["a word" * 1000] * MANY),
    "bytes": pa.array([b"a word" * 50] * MANY, pa.large_binary()),
    "text among gaps": pa.array([None] * (MANY // 2) + ["a word" * 50] * (MANY // 2)),
    "lists of text": pa.array([["a word" * 50, "b" * 200]] * MANY),
    "structures": pa.array([{"a": "a word" * 50, "b": 1.5}] * MANY),
    "dictionary": pa.array(["a word" * 50] * MANY).dictionary_encode(),
}


@pytest.mark.parametrize("kind", REPEATED)
def test_the_memory_of_cells_that_are_encoded_by_a_dictionary(run: Run, kind: str) -> None:
    save("x.parquet", {"x.y": REPEATED[kind]}, row_group_size=20_000)
    in_memory = pq.read_table("x.parquet").nbytes
    assert Path("x.parquet").stat().st_size < in_memory / 8 or kind == "bool"
    assert 0.9 * in_memory <= table_bytes(Path("x.parquet")) <= 8.1 * in_memory


def test_the_memory_of_a_table_that_is_read_whole(run: Run) -> None:
    save("x.parquet", {"x": REPEATED["float64"], "y": pa.array(np.ones(MANY, np.float32)), "z": REPEATED["text"]})
    size, cells = Path("x.parquet").stat().st_size, table_bytes(Path("x.parquet"))
    assert whole_bytes(Path("x.parquet")) == size + cells + MANY * 4 * (8 + 4)
    assert whole_bytes(Path("x.parquet"), ["y"]) == size + cells + MANY * 4 * 4
