"""What can be measured, on which data, and whether a later result is faster. No device."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dmlgpu import reference
from dmlgpu.bench.comparison import compare, render
from dmlgpu.bench.results import Report, Result, read_report
from dmlgpu.bench.rows import AXES, Row, default_rows, parse_axis, quick_rows, rows_of, shape_text
from dmlgpu.bench.tables import cells, closing, heading, lines, markdown
from dmlgpu.bench.workloads import Data, elements, numpy_call
from dmlgpu.dtypes import ELEMENT_TYPES
from dmlgpu.errors import ArgumentError
from dmlgpu.planning.plan import KERNELS

HEADER = {
    "device": {"summary": "a GPU", "software": False, "driver": "1.2", "limits": {"max-buffer-size": 4}},
    "machine": {"processor": "a CPU", "cores": 2, "memory_gib": None, "system": "Linux x86_64"},
    "versions": {"numpy": "2"},
    "clock": "gpu",
    "clock_reason": None,
}
ROW = Row("sum", "float32", (64, 1000), 1)


def report(*results: Result, **header: object) -> Report:
    return Report(HEADER | header, results)


def result(row: Row = ROW, seconds: float = 1e-3, spread: float = 0.01, **more: object) -> Result:
    """Return a result of 9 samples, spread evenly around a time, of a copy that takes 1 ms."""
    samples = [seconds * (1 + spread * (i - 4) / 4) for i in range(9)]
    return Result(row, samples, "vec4", [1e-3] * 9, **more)  # type: ignore[arg-type]


class TestRows:
    def test_all_combinations(self) -> None:
        rows = rows_of(
            {
                "type": ("float32", "int8"),
                "shape": ((3, 4, 5), (6,)),
                "axis": (0, "last", 1),
                "kernel": ("auto", *KERNELS),
            }
        )
        assert len(rows) == len(set(rows)) == 2 * (3 + 1) * (1 + len(KERNELS))
        assert {row.axis for row in rows if row.shape == (3, 4, 5)} == {0, 1, 2}

    def test_rounding_has_no_axis_and_no_integers(self) -> None:
        chosen = {"operator": ("round",), "type": ("int8", "float16"), "shape": ((3, 4),), "axis": (0, 1)}
        assert rows_of(chosen) == [Row("round", "float16", (3, 4))]

    @pytest.mark.parametrize("chosen", [{"shape": ((3,),), "axis": (1,)}, {"operator": ("round",), "type": ("int8",)}])
    def test_nothing_left(self, chosen: dict[str, tuple[object, ...]]) -> None:
        with pytest.raises(ArgumentError, match="these values leave no row"):
            rows_of(chosen)

    def test_values(self) -> None:
        assert parse_axis("shape=2^24,16x2^20") == ("shape", ((2**24,), (16, 2**20)))
        assert parse_axis("axis=first, -1,first") == ("axis", ("first", -1))
        assert parse_axis("type=uint8") == ("type", ("uint8",))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("colour=red", r"there is no axis 'colour'; there are operator, type, shape, axis, "),
            ("type", r"'type' has no values; write NAME=VALUE"),
            ("type=bfloat16", r"the axis 'type' has no value 'bfloat16'; it has float32, "),
            ("kernel=fast", r"the axis 'kernel' has no value 'fast'; it has auto, "),
            ("shape=3x0", r"'3x0' is no shape: write sizes of at least 1"),
            ("shape=", r"'' is no shape"),
            ("shape=2^16x2^16", r"'2\^16x2\^16' is too large: at most 8 dimensions and 2\^32-1 elements"),
            ("shape=1x1x1x1x1x1x1x1x1", r"is too large"),
            ("axis=deep", r"'deep' is no axis: give a number or first, middle, last"),
        ],
    )
    def test_unknown_names_and_values(self, text: str, message: str) -> None:
        with pytest.raises(ArgumentError, match=message):
            parse_axis(text)

    def test_names_leave_out_what_is_usual(self) -> None:
        assert ROW.name == "sum float32 64x1000 axis 1"
        assert Row("product", "int8", (2**20, 3), 0, "decreasing", "exclusive", "tiles").name == (
            "product int8 2^20x3 axis 0 decreasing exclusive tiles"
        )
        assert Row("round", "float16", (5,)).name == "round float16 5"
        assert shape_text((16384, 8192)) == "2^14x8192"

    def test_bytes_and_slices(self) -> None:
        assert (ROW.elements, ROW.bytes_moved, ROW.slices) == (64_000, 512_000, 64)
        assert Row("sum", "int64", (64, 1000), 0).bytes_moved == 1_024_000

    def test_the_usual_runs_cover_the_operators(self) -> None:
        for rows in (quick_rows(), default_rows()):
            assert len(rows) == len(set(rows))
            assert {row.operator for row in rows} == {"sum", "product", "round"}
            assert {row.direction for row in rows} == {"increasing", "decreasing"}
            assert {row.exclusivity for row in rows} == {"inclusive", "exclusive"}
        assert max(row.elements for row in quick_rows()) <= 2**18
        assert list(AXES) == ["operator", "type", "shape", "axis", "direction", "exclusivity", "kernel"]


class TestData:
    @pytest.mark.parametrize("kind", [element.name for element in ELEMENT_TYPES])
    @pytest.mark.parametrize("operator", ["sum", "product"])
    def test_no_result_is_special(self, kind: str, operator: str) -> None:
        x = elements(operator, kind, 1 << 18)
        assert (x.dtype, x.shape) == (np.dtype(kind), (1 << 18,))
        assert np.array_equal(x, elements(operator, kind, 1 << 18))
        assert not reference.meets_subnormals(x, operator, axis=0)
        out = reference.cumulative(x, operator, axis=0)
        assert np.isfinite(out).all()
        assert len(np.unique(out[-200:])) > 20

    @pytest.mark.parametrize("direction", ["increasing", "decreasing"])
    @pytest.mark.parametrize("exclusivity", ["inclusive", "exclusive"])
    @pytest.mark.parametrize("operator", ["sum", "product"])
    def test_numpy_computes_the_same(self, operator: str, direction: str, exclusivity: str) -> None:
        data = Data()
        for axis in range(3):
            row = Row(operator, "int32", (4, 5, 6), axis, direction, exclusivity)
            assert reference.same_bits(numpy_call(row)(data.input(row)), data.expected(row))

    def test_inputs_are_shared_and_read_only(self) -> None:
        data = Data()
        x = data.input(ROW)
        assert np.shares_memory(x, data.input(replace(ROW, operator="copy", shape=(64_000,))))
        assert not x.flags.writeable
        assert data.expected(ROW) is data.expected(replace(ROW, kernel="tiles"))


class TestReports:
    def test_a_file_reads_back(self, tmp_path: Path) -> None:
        written = report(
            result(whole=[2.0], numpy=[6.0], upload=[0.5], download=[0.25], difference="[0]: 1 against 2"),
            result(Row("copy", "float32", (64_000,), kernel="vec4"), warnings=["noisy: 20 %"]),
        )
        (tmp_path / "x.json").write_text(written.json())
        found = read_report(tmp_path / "x.json")
        assert found == Report(HEADER, list(written.results))
        assert found.results[0].speedup == 3.0
        assert found.results[0].share == pytest.approx(1.0)

    def test_the_tables(self) -> None:
        one = result(seconds=2e-3, whole=[2.0], numpy=[6.0], upload=[0.5], download=[0.25])
        line = cells(one)
        assert line[0] == "sum float32 64x1000 axis 1"
        assert line[1:] == ["2", "1 %", "0.032", "0.256", "0.50", "2e+03", "500", "250", "3.00", "same bits"]
        text = markdown(report(one, result(difference="[0]: 1 | 2", warnings=["noisy: 20 %"])))
        assert "device: a GPU  \n" in text
        assert "| sum float32 64x1000 axis 1 | 2 | " in text
        assert "| WRONG: [0]: 1 / 2 |" in text
        assert text.endswith("- sum float32 64x1000 axis 1: noisy: 20 %\n")
        rows = list(csv.DictReader(report(one).csv().splitlines()))
        assert len(rows) == 1
        assert (rows[0]["shape"], rows[0]["axis"], rows[0]["copy"], rows[0]["result"]) == (
            "64x1000",
            "1",
            "vec4",
            "same bits",
        )
        assert float(rows[0]["elements_per_s"]) == pytest.approx(32e6)
        assert float(rows[0]["share_of_copy"]) == pytest.approx(0.5)

    def test_a_row_is_a_line_of_a_terminal(self) -> None:
        assert heading() == " " * 33 + "       ms noise   GB/s of copy whole ms x NumPy"
        one = result(seconds=2e-3, whole=[2.0], numpy=[6.0], upload=[0.5], download=[0.25])
        assert lines(one) == "sum float32 64x1000 axis 1" + " " * 12 + "2.00   1 %  0.256    0.50     2000    3.00"
        assert len(lines(one)) == len(heading()) == 80

    @pytest.mark.parametrize("seconds", [1e-9, 3.04e-6, 0.0243, 1.0, 99.96, 12_345.6, 3e9])
    @pytest.mark.parametrize("other", [1e-9, 0.0243, 3e9])
    def test_any_figure_fits_a_line(self, seconds: float, other: float) -> None:
        """Gigabytes a second of a small row on a busy machine, as 0.000987, had more digits than room."""
        times = {"copy_seconds": [other], "whole": [other], "numpy": [seconds]}
        names = Row("copy", "float32", (3000,), kernel="vec4"), Row("product", "float16", (99, 9999, 9999), 1)
        both = [replace(Result(row, [seconds], "vec4"), **times) for row in names]
        for line in [*(line for one in both for line in lines(one).splitlines()), *closing(both).splitlines()]:
            assert len(line) <= 80, line
        assert [len(one.split()) for one in lines(both[1]).splitlines()] == [5, 7], "no figures run together"

    @pytest.mark.parametrize("factor", [1e-12, 1e-3, 1.0, 99.996, 1e3, 1e12])
    def test_any_figure_fits_a_line_of_a_comparison(self, factor: float) -> None:
        row = Row("product", "float16", (99, 9999, 9999), 1)
        old, new = (result(row, seconds=seconds) for seconds in (1e-3, 1e-3 * factor))
        for one, other in ((old, new), (new, old)):
            text = render(compare(report(one), report(other)))
            assert max(map(len, text.splitlines())) <= 80, text

    def test_long_names_and_wrong_bits_have_lines_of_their_own(self) -> None:
        row = Row("product", "float16", (512, 512), 1, "decreasing", "exclusive", "serial_tiles")
        name, numbers, *wrong = lines(result(row, difference="[0, 0]: 1.5 (0x3e00) against 2 " * 5)).splitlines()
        assert name == "product float16 512x512 axis 1 decreasing exclusive serial_tiles"
        assert numbers.startswith(" " * 33)
        assert wrong[0].startswith("  WRONG: [0, 0]: 1.5 (0x3e00) against 2 ")
        assert len(wrong) > 1
        assert max(map(len, (name, numbers, *wrong))) <= 80

    def test_the_closing_sentences(self) -> None:
        copies = [
            Result(Row("copy", "float32", (n,), kernel="vec4"), [1e-3], "vec4", [1e-3]) for n in (1_000_000, 2_000_000)
        ]
        other = Result(Row("copy", "float32", (1_000_000,), kernel="word"), [1e-6], "vec4", [1e-3])
        rows = [
            Result(replace(ROW, axis=axis), [seconds], "vec4", [1e-3], whole=[2.0], numpy=[6.0], difference=difference)
            for axis, seconds, difference in ((0, 2e-3, None), (1, 1e-3, None), (1, 8e-3, "[0]: 1 against 2"))
        ]
        assert closing([*copies, other, *rows]).splitlines() == [
            "copies: 8.00 to 16.0 GB/s, the fastest for each type and size (--show-copies)",
            "",
            "The median of 3 rows reaches 0.50 (0.12 to 1.00) of a copy's speed, whole calls",
            "3.00 (3.00 to 3.00) times NumPy's; 1 of 3 do NOT have the reference's bits. The",
            "slowest by its share of a copy is sum float32 64x1000 axis 1.",
        ]
        assert closing(rows[:1]) == (
            "\nThe row reaches 0.50 of a copy's speed, whole calls 3.00 times NumPy's; all have\nthe reference's bits."
        )

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("text", "is no result of 'dmlgpu bench --json': it is not JSON"),
            ("[]", "is no result of 'dmlgpu bench --json'"),
            ('{"format": "dmlgpu digests"}', "is no result of 'dmlgpu bench --json'"),
            (
                '{"format": "dmlgpu bench", "version": 9}',
                "has version 9 of the format, and this dmlgpu reads version 1",
            ),
            ('{"format": "dmlgpu bench", "version": 1}', "is damaged: KeyError: 'header'; measure again"),
        ],
    )
    def test_other_files(self, tmp_path: Path, content: str, message: str) -> None:
        (tmp_path / "x.json").write_text(content)
        with pytest.raises(ArgumentError, match=message):
            read_report(tmp_path / "x.json")

    def test_a_row_without_samples_is_damage(self, tmp_path: Path) -> None:
        content = json.loads(report(result()).json())
        content["rows"][0]["seconds"] = []
        (tmp_path / "x.json").write_text(json.dumps(content))
        with pytest.raises(ArgumentError, match="is damaged"):
            read_report(tmp_path / "x.json")


class TestComparison:
    @pytest.mark.parametrize(
        ("old", "new", "spread", "verdict"),
        [
            (1e-3, 1e-3, 0.01, "SAME"),
            (1e-3, 0.8e-3, 0.01, "FASTER"),
            (1e-3, 1.25e-3, 0.01, "SLOWER"),
            (1e-3, 1.25e-3, 0.5, "SAME"),
            (1e-3, 1.02e-3, 0.001, "SAME"),
        ],
    )
    def test_verdicts(self, old: float, new: float, spread: float, verdict: str) -> None:
        (change,) = compare(report(result(seconds=old, spread=spread)), report(result(seconds=new, spread=spread)))
        assert change.verdict == verdict
        assert change.factor == pytest.approx(old / new)
        assert change.matters == (verdict == "SLOWER")

    def test_a_machine_that_is_slower_today_changes_nothing(self) -> None:
        slow = result()
        slow = replace(slow, seconds=[2 * s for s in slow.seconds], copy_seconds=[2 * s for s in slow.copy_seconds])
        assert compare(report(result()), report(slow))[0].verdict == "SAME"

    def test_a_slower_copy_is_no_fault_of_the_code(self) -> None:
        row = Row("copy", "float32", (5,), kernel="vec4")
        (change,) = compare(report(result(row)), report(result(row, seconds=2e-3)))
        assert (change.verdict, change.matters) == ("SLOWER", False)

    def test_wrong_bits_are_no_speed(self) -> None:
        (change,) = compare(report(result()), report(result(seconds=1e-6, difference="[0]: 1 against 2")))
        assert (change.verdict, change.matters) == ("WRONG", True)

    def test_the_table(self) -> None:
        other = Row("round", "float32", (5,))
        changes = compare(report(result(), result(other)), report(result(seconds=2e-3), result(other), result(ROW)))
        text = render(changes[:2])
        first, *rest = text.splitlines()
        assert first == " " * 34 + "verdict    speed   of copy, old -> new"
        assert rest == [
            "sum float32 64x1000 axis 1        SLOWER    0.50 x   0.99-1.01 -> 0.50-0.50",
            "round float32 5                   SAME      1.00 x   0.99-1.01 -> 0.99-1.01",
            "",
            "1 SAME, 0 FASTER, 1 SLOWER: operators by their shares of a copy, which decide",
        ]

    def test_the_table_fits_terminals_and_counts_copies_apart(self) -> None:
        long = replace(ROW, shape=(1, 64, 1, 1000), axis=3, direction="decreasing", exclusivity="exclusive")
        copy = Row("copy", "float32", (5,), kernel="vec4")
        one = report(result(long), result(copy), result(difference="[0]: 1 against 2"))
        text = render(compare(report(result(long), result(copy, seconds=1e-4), result()), one))
        assert text.splitlines()[1:3] == [long.name, " " * 34 + "SAME      1.00 x   0.99-1.01 -> 0.99-1.01"]
        assert text.splitlines()[-3:] == [
            "1 SAME, 0 FASTER, 0 SLOWER, 1 WRONG: operators by their shares of a copy, which",
            "decide",
            "0 SAME, 0 FASTER, 1 SLOWER: copies by their times, which tell of the machine",
        ]
        assert "copy float32" not in text

    def test_another_machine(self) -> None:
        copy = Row("copy", "float32", (5,), kernel="vec4")
        other = report(result(), result(copy), machine=HEADER["machine"] | {"cores": 4})  # type: ignore[operator]
        here = report(result(), result(copy))
        with pytest.raises(ArgumentError, match=r"of different machines: cores is 2 in the one and 4 in the other;"):
            compare(here, other)
        assert [change.row for change in compare(here, other, across_machines=True)] == [ROW]

    def test_nothing_in_common(self) -> None:
        with pytest.raises(ArgumentError, match="share no row"):
            compare(report(result()), report(result(Row("round", "float32", (5,)))))
