"""The conformance cases: their names, their data, what they find, and files of digests."""

from __future__ import annotations

import hashlib
import io
import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlgpu import reference
from dmlgpu.conformance import (
    Case,
    Digests,
    Placement,
    ScanCase,
    check,
    compare,
    compute,
    digest,
    parse,
    probe,
    reference_outcome,
    share,
    suite,
)
from dmlgpu.conformance.elements import FAMILIES, elements
from dmlgpu.conformance.placement import BROADCASTS, LAYOUTS, RELATIONS
from dmlgpu.conformance.probes import hard_pairs
from dmlgpu.dtypes import ELEMENT_TYPES
from dmlgpu.errors import ArgumentError, ShaderError
from dmlgpu.planning.plan import EVERYWHERE, KERNELS, plan_problem
from dmlgpu.planning.windows import Limits
from dmlgpu.runtime.device import Device
from dmlgpu.runtime.measured import measure_subgroup_sizes

from .harness import changed

_FLOATS = [element.name for element in ELEMENT_TYPES if element.kind == "float"]
SUITE = list(suite())
FULL = list(suite(full=True))
PLAIN = "sum.float32.2x4097.axis1.inclusive.increasing.packed-to-packed.lookback.plain"


class TestSuite:
    def test_names_say_everything(self) -> None:
        for case in FULL:
            assert parse(case.name) == case

    def test_no_case_is_there_twice_and_the_full_suite_has_all(self) -> None:
        names, full = [case.name for case in SUITE], {case.name for case in FULL}
        assert len(SUITE) > 4000
        assert len(set(names)) == len(names)
        assert len(full) == len(FULL) > 20_000
        assert set(names) < full

    @pytest.mark.parametrize("cases", [SUITE, FULL], ids=["default", "full"])
    def test_each_kernel_has_each_type_operator_and_order(self, cases: list[Case]) -> None:
        scans = [case for case in cases if isinstance(case, ScanCase) and case.operator != "compensated"]
        types = [element.name for element in ELEMENT_TYPES]
        # Integers that are to be read twice look back.
        served = {(one, way) for one, way in product(types, KERNELS) if way != "reduce_then_scan" or one in _FLOATS}
        seen = {(case.dtype, case.operator, case.way) for case in scans}
        assert seen >= set(product(types, ("sum", "product"), EVERYWHERE))
        assert {(dtype, way) for dtype, _, way in seen if way != "auto"} == served
        orders = set(product((False, True), (False, True)))
        if cases is FULL:
            everything = {(case.dtype, case.way, case.operator, case.exclusive, case.reverse) for case in scans}
            for one, operator in product(served, ("sum", "product")):
                assert everything >= {(*one, operator, *order) for order in orders}
        else:  # either of two operators in decreasing direction, where elements are never read 16 bytes at a time
            for dtype, way in served:
                assert orders == {(c.exclusive, c.reverse) for c in scans if (c.dtype, c.way) == (dtype, way)}
            for operator, way in product(("sum", "product"), KERNELS):
                assert orders == {(c.exclusive, c.reverse) for c in scans if (c.operator, c.way) == (operator, way)}
        for dtype in types:
            lengths = {case.shape[1] for case in scans if case.dtype == dtype and case.axis == 1}
            assert lengths >= {1, 15, 16, 17, 255, 256, 257, 4095, 4096, 4097}

    @pytest.mark.parametrize(
        "limits",
        [Limits(), changed(Limits(), software=True, columns=True, float64=True), Limits(software=True)],
        ids=["gpu", "lavapipe", "opengl"],
    )
    def test_the_default_cases_need_few_pipelines_of_every_sort(self, limits: Limits) -> None:
        pipelines, sorts = set(), set()
        for case in SUITE:
            one_buffer = case.placement.relation != "to"
            for one in plan_problem(case.problem(), limits, one_buffer=one_buffer, kernel=case.kernel).passes:
                pipelines.add(one.pipeline)
                constants, slots = dict(one.pipeline.constants), dict(one.pipeline.slots)
                if "flat" in constants and "run_access" in slots:
                    element = (slots["element"], constants["input_log2_bits"])
                    sorts.add((one.pipeline.kernel, element, constants["product"]))
                    sorts.add((one.pipeline.kernel, slots["run_access"]))
                    sorts.add((one.pipeline.kernel, slots["input"]))
                    sorts.add((one.pipeline.kernel, constants["flat"]))
                    sorts.add((element, slots["run_access"]))
        assert len(pipelines) < 490  # with 455 of lavapipe, `dmlgpu verify` takes 36 s on two cores and no cache
        float64 = "f64" if limits.float64 else "f64_words"
        formats = [("f16", 4), ("f32", 5), (float64, 6), ("int", 3), ("int", 4), ("int", 5), ("int64", 6)]
        four_passes = ["scan_lookback", "scan_tiles", "scan_serial_totals", "scan_serial_tiles"]
        scans = ["scan_slices", "scan_rows", *four_passes]
        assert sorts >= set(product(scans, formats, (0, 1)))
        assert sorts >= set(product(scans, ("strided", "quads", "separate", "shared", "in_output", 0, 1)))
        assert sorts >= set(product(formats, ("strided", "quads")))

    @pytest.mark.parametrize("shares", [1, 3, 4])
    def test_shares_are_all_cases_and_have_no_shaders_of_scans_in_common(self, shares: int) -> None:
        parts = [share(SUITE, number, shares) for number in range(shares)]
        assert sorted(case.name for part in parts for case in part) == sorted(case.name for case in SUITE)
        sorts = [{(case.column, case.dtype.removeprefix("u")) for case in part} for part in parts]
        assert sum(map(len, sorts)) == len(set().union(*sorts))
        for part, these in zip(parts, sorts, strict=True):
            assert part == [case for case in SUITE if (case.column, case.dtype.removeprefix("u")) in these]
            assert len(part) > len(SUITE) / shares / 2

    @pytest.mark.parametrize("cases", [SUITE, FULL], ids=["default", "full"])
    def test_every_layout_is_there(self, cases: list[Case]) -> None:
        scans = [case for case in cases if isinstance(case, ScanCase) and case.operator != "compensated"]
        relations = set()
        for dtype in (element.name for element in ELEMENT_TYPES):
            placements = {case.placement for case in scans if case.dtype == dtype}
            assert {placement.source for placement in placements} == {*LAYOUTS, *BROADCASTS}
            assert {placement.target for placement in placements} == set(LAYOUTS)
            relations |= {(dtype, placement.relation) for placement in placements}
        everywhere = {(element.name, relation) for element in ELEMENT_TYPES for relation in (*RELATIONS, "in-place")}
        if cases is FULL:
            assert relations == everywhere
        else:  # what types share of their bindings, one wide and one narrow type show, and one of two words
            one_buffer = {(dtype, "in-place") for dtype in ("float32", "uint8", "int64")}
            one_buffer |= {(dtype, "beside") for dtype in ("uint8", "int64")}
            assert relations == one_buffer | {each for each in everywhere if each[1] == "to"}

    def test_slices_of_several_spans_are_there_for_every_type_and_kernel(self) -> None:
        long = {(case.dtype, case.way) for case in SUITE if isinstance(case, ScanCase) and max(case.shape) > 131_072}
        read_twice = {(dtype, "reduce_then_scan") for dtype in _FLOATS}
        assert long == read_twice | {(element.name, kernel) for element in ELEMENT_TYPES for kernel in EVERYWHERE}

    def test_compensated_sums_are_there_for_every_kernel(self) -> None:
        cases = [case for case in SUITE if isinstance(case, ScanCase) and case.operator == "compensated"]
        assert {case.way for case in cases} == set(EVERYWHERE)
        assert {case.family for case in cases} == {"plain", "special", "subnormal"}
        for case in cases:
            if case.family == "plain":
                plain = replace(case, operator="sum").expected()
                assert max(case.shape) < 50 or not np.array_equal(case.expected(), plain)

    def test_monotone_sums_are_there_for_every_kernel_and_type(self) -> None:
        cases = [case for case in SUITE if isinstance(case, ScanCase) and case.operator == "monotone"]
        assert {case.way for case in cases} == set(EVERYWHERE)
        assert {case.dtype for case in cases} == {element.name for element in ELEMENT_TYPES}
        assert {(case.exclusive, case.reverse) for case in cases} == set(product((False, True), (False, True)))
        for case in cases:
            plain = replace(case, operator="sum").expected()
            assert not np.array_equal(case.expected(), plain, equal_nan=plain.dtype.kind == "f")

    def test_few_cases_meet_subnormals_and_none_of_plain_elements(self) -> None:
        meeting = [case for case in SUITE if case.meets_subnormals()]
        assert {case.family for case in meeting} == {"subnormal"}
        assert {case.dtype for case in meeting} == {"float32", "float64"}
        assert not any(isinstance(case, ScanCase) and case.operator == "product" for case in meeting)
        assert len(meeting) < len(SUITE) / 20

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("", "it has not the fields"),
            ("sum", "it has not the fields"),
            (PLAIN + ".plain", "it has not the fields"),
            (PLAIN.replace("sum", "mean"), "it has not the fields"),
            (PLAIN.replace("float32", "float8"), "'float8' is no type; there are float32"),
            (PLAIN.replace("sum.float32", "compensated.float64"), "'float64' is no type; there are float32"),
            (PLAIN.replace("2x4097", "2x"), "'2x' is no shape"),
            (PLAIN.replace("2x4097", "x".join("1" * 9)), "is no shape of 1 to 8 dimensions"),
            (PLAIN.replace("2x4097", "0x4097"), "has not 1 to"),
            (PLAIN.replace("2x4097", "99999999x4097"), "has not 1 to"),
            (PLAIN.replace("2x4097", "2x04097"), "it would be sum.float32.2x4097"),
            (PLAIN.replace("axis1", "axis2"), "'axis2' is no axis; there are axis0, axis1"),
            (PLAIN.replace("inclusive", "half"), "'half' is no exclusivity"),
            (PLAIN.replace("increasing", "up"), "'up' is no direction"),
            (PLAIN.replace("packed-to-packed", "packed"), "'packed' is no placement"),
            (PLAIN.replace("packed-to-packed", "packed-to-broadcast"), "is no placement"),
            (PLAIN.replace("packed-to-packed", "broadcast-in-place"), "is no placement"),
            (PLAIN.replace("lookback", "fast"), "'fast' is no kernel; there are auto, slices"),
            (PLAIN.replace("plain", "odd"), "'odd' is no family"),
            ("round.int8.half_even.9.packed-to-packed.plain", "'int8' is no type; there are float32"),
            ("round.float16.up.9.packed-to-packed.plain", "'up' is no mode"),
            ("convert.bool-to-bool.9.packed-to-packed.plain", "'bool' is no type"),
            ("convert.bool-to-int8.9.packed-in-place.plain", "a conversion has two buffers"),
        ],
    )
    def test_what_is_no_name(self, name: str, message: str) -> None:
        with pytest.raises(ArgumentError, match="there is no case") as caught:
            parse(name)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


class TestDocumentation:
    TEXT = (Path(__file__).parent.parent / "docs" / "portability.md").read_text(encoding="utf-8")

    def test_cases_that_are_shown_are_cases(self) -> None:
        shown = re.findall(r"\b(?:sum|product|round|convert)\.[-.\w]+\.\w+", self.TEXT)
        assert len(shown) >= 4
        full = {case.name for case in FULL}
        assert [name for name in shown if parse(name).name not in full] == []

    def test_all_parts_of_names_are_explained(self) -> None:
        for word in (*LAYOUTS, *BROADCASTS, *FAMILIES, *KERNELS, "auto", "SOURCE-beside-TARGET", "LAYOUT-in-place"):
            assert f"`{word}`" in self.TEXT

    def test_every_probe_is_explained(self, device: Device) -> None:
        rows = " ".join(re.findall(r"^\| ([^|]+) \|", self.TEXT, re.MULTILINE))
        for one in probe(device):
            for word in one.name.split():
                assert word in rows


class TestElements:
    def test_the_bits_are_the_same_everywhere(self) -> None:
        state = hashlib.sha256()
        for family in FAMILIES:
            for element in ELEMENT_TYPES:
                for operator in ("sum", "product", ""):
                    x = elements(family, element.name, (7, 300), operator)
                    state.update(x.astype(x.dtype.newbyteorder("<")).tobytes())
        assert state.hexdigest() == "cf5f2b0bc24bf34ea98137efb7f7eb44bc9bfd2df874ba39a8444cb8e7ccf397"

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    @pytest.mark.parametrize("operator", ["sum", "product"])
    def test_families_are_what_they_say(self, dtype: str, operator: str) -> None:
        info = np.finfo(dtype)
        plain = elements("plain", dtype, (4, 5000), operator)
        assert np.isfinite(plain).all()
        assert np.abs(plain).min() >= info.smallest_normal
        assert np.isfinite(reference.cumulative(plain, operator, axis=1)).all()
        special = elements("special", dtype, (4, 5000), operator)
        assert np.isnan(special).any()
        assert np.isinf(special).any()
        assert (special == info.max).any()
        assert np.isfinite(special[:2]).all()
        tiny = np.abs(elements("subnormal", dtype, (4, 5000), operator))
        assert ((tiny < info.smallest_normal) & (tiny > 0)).any()

    def test_patterns_hold_every_float16_and_all_magnitudes(self) -> None:
        assert np.unique(elements("patterns", "float16", (65_536,)).view(np.uint16)).size == 65_536
        for dtype in ("float32", "float64"):
            x = elements("patterns", dtype, (65_536,))
            halves = np.abs(x[np.isfinite(x)]) % 1 == 0.5
            assert halves.sum() > 300
            assert np.isnan(x).any()
        wide = elements("patterns", "int64", (8192,))
        assert np.unique(np.frexp(wide.astype(np.float64))[1]).size > 60
        assert (wide < 0).any()

    def test_products_of_integers_do_not_vanish_at_once(self) -> None:
        x = elements("plain", "uint8", (2, 20_000), "product")
        assert np.all(reference.cumulative(x, "product", axis=1)[:, :9000] != 0)
        assert (x % 2 == 0).any()

    @pytest.mark.parametrize("operator", ["sum", "product"])
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_hard_pairs_need_every_kind_of_rounding(self, dtype: str, operator: str) -> None:
        pairs = hard_pairs(dtype, operator)
        assert len(pairs) > 3000
        assert np.isfinite(pairs).all()
        if operator == "product":
            with np.errstate(over="ignore"):
                products = np.abs(np.multiply.reduce(pairs, axis=1))
            assert min(np.abs(pairs).min(), products.min()) > np.finfo(dtype).smallest_normal
        if dtype == "float64":
            assert operator == "product" or reference.meets_subnormals(pairs, operator, axis=1).any()
            return
        assert not reference.meets_subnormals(pairs, operator, axis=1).any()
        ufunc = {"sum": np.add, "product": np.multiply}[operator]
        exact = ufunc(pairs[:, 0].astype(np.float64), pairs[:, 1].astype(np.float64))
        low_bits = exact.view(np.uint64) & np.uint64(2**29 - 1)  # what float32 cannot hold of a normal number
        ties = np.count_nonzero(low_bits == 2**28)
        assert ties > 50
        assert np.count_nonzero(low_bits) > 1000


class TestPlacement:
    @pytest.mark.parametrize("source", [*LAYOUTS, *BROADCASTS])
    @pytest.mark.parametrize("target", LAYOUTS)
    @pytest.mark.parametrize("relation", RELATIONS)
    def test_layouts_are_apart_and_disjoint(self, source: str, target: str, relation: str) -> None:
        placement = Placement(source, relation, target)
        assert Placement.parse(str(placement)) == placement
        one, other = placement.layouts((3, 5, 7), 1, (1, 1))
        assert one.sizes == other.sizes == (3, 5, 7)
        assert other.is_disjoint
        assert one.extent[0] >= 0
        assert other.extent[0] >= 0
        if relation == "beside":
            assert other.extent[0] - one.extent[1] >= 512

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_in_place_is_one_layout(self, layout: str) -> None:
        placement = Placement.in_place(layout)
        assert Placement.parse(str(placement)) == placement
        one, other = placement.layouts((3, 5), 0, (4, 4))
        assert one is other

    def test_broadcast_inputs_repeat_elements(self) -> None:
        case = parse("sum.int32.4x50x6.axis1.inclusive.increasing.broadcast-to-packed.auto.plain")
        assert (case.x() == case.x()[:1, :, :1]).all()
        assert np.unique(case.x()).size > 10
        along = parse("sum.int32.4x50x6.axis1.inclusive.increasing.broadcast_axis-to-packed.auto.plain")
        assert (along.x() == along.x()[:, :1]).all()


class TestCheck:
    @pytest.mark.combinations
    @pytest.mark.parametrize("number", range(8))
    def test_a_sample_has_the_references_bits(self, device: Device, number: int) -> None:
        """A small one: "make matrix" runs all."""
        for case in SUITE[number * 29 :: 457]:
            assert check(device, case, device.subnormals()).difference is None
            if not case.meets_subnormals():
                assert check(device, case, device.subnormals()).digest == reference_outcome(case).digest

    def test_the_digest_does_not_depend_on_placement_and_kernel(self, device: Device) -> None:
        base = parse("product.float16.3x300.axis1.exclusive.decreasing.packed-to-packed.auto.plain")
        assert isinstance(base, ScanCase)
        found = set()
        for way in ("auto", *KERNELS):
            for placement in (Placement("reversed", "beside", "padded"), Placement.in_place("transposed")):
                found.add(check(device, replace(base, way=way, placement=placement), device.subnormals()).digest)
        assert found == {reference_outcome(base).digest}

    def test_a_wrong_bit_is_found(self, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        original = device.download

        def wrong(buffer: Any, offset: int, out: np.ndarray) -> None:
            original(buffer, offset, out)
            out.view(np.uint32)[4096] ^= 1

        monkeypatch.setattr(device, "download", wrong)
        case = parse(PLAIN)
        outcome = check(device, case, {"sum": True, "product": True})
        assert outcome.difference is not None
        assert outcome.difference.startswith("at [0, 4096] the device has ")
        assert outcome.difference.endswith("; 1 of 8194 differ")
        assert outcome.difference.count("(0x") == 2
        assert outcome.digest not in (None, reference_outcome(case).digest)

    def test_a_write_beside_the_output_is_found(self, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        original = device.download

        def wrong(buffer: Any, offset: int, out: np.ndarray) -> None:
            original(buffer, offset, out)
            out.view(np.uint8)[1] ^= 4

        monkeypatch.setattr(device, "download", wrong)
        case = parse(PLAIN.replace("packed-to-packed", "packed-to-offset"))
        result, stray = compute(device, case)
        assert reference.same_bits(result, case.expected())
        assert stray is not None
        assert "byte 1 of a buffer of" in stray
        assert check(device, case, {"sum": True, "product": True}).difference == stray

    def test_an_error_is_a_difference_and_memory_is_given_back(
        self, device: Device, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        allocated: list[Any] = []
        original = device.allocate

        def fail(*_: Any, **__: Any) -> None:
            raise ShaderError("does not\ncompile")

        def allocate(nbytes: int) -> Any:
            allocated.append(original(nbytes))
            return allocated[-1]

        monkeypatch.setattr(device, "allocate", allocate)
        monkeypatch.setattr(device, "run", fail)
        outcome = check(device, parse(PLAIN), {"sum": True, "product": True})
        assert (outcome.digest, outcome.difference) == (None, "ShaderError: does not compile")
        assert len(allocated) == 2
        assert all(buffer.released for buffer in allocated)

    def test_subnormals_are_expected_as_the_device_treats_them(self) -> None:
        case = parse("sum.float32.4x17.axis1.inclusive.increasing.packed-to-packed.auto.subnormal")
        flushed = case.expected(case.flushes({"sum": False, "product": True}))
        kept = case.expected(case.flushes({"sum": True, "product": True}))
        assert not reference.same_bits(flushed, kept)
        assert not parse(case.name.replace("float32", "float64")).flushes({"sum": False, "product": False})
        assert reference_outcome(case).digest is None


class TestDigest:
    def test_every_nan_is_one_pattern_and_zeros_have_signs(self) -> None:
        for dtype, bits in (("float16", "u2"), ("float32", "u4"), ("float64", "u8")):
            quiet = np.array([np.nan, 1], dtype)
            other = quiet.copy()
            other.view(bits)[0] |= 1
            other.view(bits)[0] ^= 1 << (8 * other.itemsize - 1)
            assert np.isnan(other[0])
            assert digest(quiet) == digest(other) != digest(np.array([np.inf, 1], dtype))
            assert digest(np.array([0.0], dtype)) != digest(np.array([-0.0], dtype))

    def test_it_is_of_little_endian_bytes(self) -> None:
        x = np.array([[1, 2], [3, 4]], np.int32)
        expected = hashlib.sha256(bytes([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0])).hexdigest()
        assert digest(x) == digest(x.astype(">i4")) == expected
        assert digest(np.array([1, np.nan], np.float16)) == hashlib.sha256(b"\x00\x3c\x00\x7e").hexdigest()


class TestProbes:
    def test_every_probe_passes_or_states_a_fact(self, device: Device) -> None:
        limits = device.limits
        found = {one.name: one for one in probe(device)}
        assert device.limits is limits
        assert [one for one in found.values() if one.passed is False] == []
        assert {name for name, one in found.items() if one.passed} == {
            "exceptional values",
            "float32 addition",
            "float32 multiplication",
            "float64 addition",
            "float64 multiplication",
            "atomics",
        }
        kept = "keep" if device.subnormals()["sum"] else "flush"
        assert f"float32 sums {kept} them" in found["subnormals"].finding
        has_subgroups = "subgroup" in device.description.features
        size = r"\d+( and \d+)*" if has_subgroups else "the adapter gives no device with subgroups"
        assert re.fullmatch(f"{size}; no kernel depends on it", found["subgroup size"].finding)

    def test_the_size_of_subgroups_is_a_power_of_two(self, device: Device) -> None:
        sizes = measure_subgroup_sizes(device.description)
        assert bool(sizes) == ("subgroup" in device.description.features)
        assert all(size in (1, 2, 4, 8, 16, 32, 64, 128) for size in sizes)

    def test_failures_are_named(self, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        original = device.download

        def wrong(buffer: Any, offset: int, out: np.ndarray) -> None:
            original(buffer, offset, out)
            out.reshape(-1).view(np.uint8)[4 * out.itemsize - 1] ^= 1

        monkeypatch.setattr(device, "download", wrong)
        found = {one.name: one for one in probe(device)}
        for name in ("exceptional values", "float32 addition", "float64 multiplication", "atomics"):
            assert found[name].passed is False
        assert found["float32 addition"].finding.startswith(
            f"1 of {len(hard_pairs('float32', 'sum'))} pairs are wrong; "
        )
        assert "bytes are lost" in found["atomics"].finding

    def test_errors_are_failures(self, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise ShaderError("does not\ncompile")

        monkeypatch.setattr(device, "run", fail)
        found = {one.name: one for one in probe(device)}
        assert found["atomics"] == replace(found["atomics"], finding="ShaderError: does not compile", passed=False)


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, Digests]:
    case = parse(PLAIN)
    made = Digests("1.2.3", "a device", "a driver", {PLAIN: reference_outcome(case).digest or ""}, {"x": "y"})
    path = tmp_path / "digests.json"
    with path.open("wb") as file:
        made.write(file)
    return path, made


class TestFiles:
    def test_what_is_written_is_read(self, written: tuple[Path, Digests]) -> None:
        path, made = written
        assert Digests.read(path) == made

    @pytest.mark.parametrize("position", [0.02, 0.2, 0.4, 0.6, 0.8, 0.95])
    def test_no_changed_byte_goes_unnoticed(self, written: tuple[Path, Digests], position: float) -> None:
        path, _ = written
        data = bytearray(path.read_bytes())
        data[int(position * len(data))] ^= 1
        path.write_bytes(data)
        with pytest.raises(ArgumentError, match=r"digests\.json is ") as caught:
            Digests.read(path)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "is damaged, or no file of digests: it is not JSON"),
            (b"\xff\xfe", "is damaged, or no file of digests"),
            (b"[" * 100_000, "is damaged, or no file of digests"),
            (b"[]", "is not a file of digests"),
            (b'{"format": "other"}', "is not a file of digests"),
            (b'{"format": "dmlgpu digests"}', "has version None of the format"),
            (
                b'{"format": "dmlgpu digests", "version": 1}',
                "has version 1 of the format, and this dmlgpu reads version 2",
            ),
            (b'{"format": "dmlgpu digests", "version": 2}', "is damaged: its content does not fit its checksum"),
        ],
    )
    def test_other_files_are_refused(self, tmp_path: Path, content: bytes, message: str) -> None:
        path = tmp_path / "x.json"
        path.write_bytes(content)
        with pytest.raises(ArgumentError, match=r"x\.json") as caught:
            Digests.read(path)
        assert message in str(caught.value)

    def test_a_truncated_file_is_refused(self, written: tuple[Path, Digests]) -> None:
        path, _ = written
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(ArgumentError, match="is damaged"):
            Digests.read(path)

    @pytest.mark.parametrize(
        "change",
        [{"digests": {"x": "y"}}, {"digests": []}, {"device": 3}, {"driver": None}, {"differences": [1]}, {"more": 1}],
    )
    def test_a_fitting_checksum_is_not_enough(self, tmp_path: Path, change: dict[str, Any]) -> None:
        file = io.BytesIO()
        Digests("1", "d", "r", {}).write(file)
        content = json.loads(file.getvalue()) | change
        del content["checksum"]
        compact = json.dumps(content, sort_keys=True, separators=(",", ":"))
        content["checksum"] = hashlib.sha256(compact.encode()).hexdigest()
        path = tmp_path / "x.json"
        path.write_text(json.dumps(content))
        with pytest.raises(ArgumentError, match="is no file of digests that"):
            Digests.read(path)


class TestCompare:
    ONE = Digests("1", "one", "", {"sum.int8.a": "0", "sum.float64.a": "1"})

    def test_equal_files_have_no_disagreement(self) -> None:
        assert compare([self.ONE, replace(self.ONE, device="two"), self.ONE]) == []

    def test_a_difference_names_the_case_and_who_agrees(self) -> None:
        other = replace(self.ONE, digests=dict(self.ONE.digests) | {"sum.int8.a": "2"})
        (found,) = compare([self.ONE, other, self.ONE])
        assert found.case == "sum.int8.a"
        assert found.groups == {"0": [0, 2], "2": [1]}

    def test_a_missing_case_is_a_difference(self) -> None:
        other = replace(self.ONE, digests={"sum.int8.a": "0"})
        (found,) = compare([self.ONE, other])
        assert found.groups == {"1": [0], None: [1]}
