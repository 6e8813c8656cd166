"""Probes: they measure on a device what devices may do differently."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import reference
from ..dtypes import by_dtype, by_name
from ..layout import Layout
from ..planning.problem import Operator, convert_problem, scan_problem
from .elements import elements, random_words

if TYPE_CHECKING:
    from ..planning.problem import ElementwiseProblem, ScanProblem
    from ..runtime.device import Device

__all__ = ["Probe", "hard_pairs", "probe"]

_OPERATORS = {"sum": np.add, "product": np.multiply}
_WORDS = {"sum": "addition", "product": "multiplication"}
_PAIRS = 4096


@dataclass(frozen=True)
class Probe:
    """The result of a probe.

    Attributes
    ----------
    name : str
        The name of the probe.
    finding : str
        What the probe found, as a text.
    passed : bool or None
        Whether results can be trusted; None where devices may differ, and results stay the same.
    """

    name: str
    finding: str
    passed: bool | None


def probe(device: Device) -> Iterator[Probe]:
    """Run the probes on a device, one after the other, and yield their results."""
    probes: list[tuple[str, Callable[[Device], tuple[str, bool | None]]]] = [
        ("subnormals", _subnormals),
        ("float64", _float64),
        ("16-bit floats", _float16),
        ("exceptional values", _exceptional),
        *(
            (f"{dtype} {_WORDS[operator]}", lambda device, o=operator, d=dtype: _correctly_rounded(device, o, d))
            for dtype in ("float32", "float64")
            for operator in _OPERATORS
        ),
        ("compiler", _opaque),
        ("atomics", _atomics),
        ("subgroup size", _subgroup_size),
    ]
    for name, run in probes:
        try:
            finding, passed = run(device)
        except Exception as error:  # a driver may fail in any way; the other probes still tell something
            finding, passed = f"{type(error).__name__}: {' '.join(str(error).split())}", False
        yield Probe(name, finding, passed)


def hard_pairs(dtype: str, operator: str) -> NDArray[Any]:
    """Return pairs of finite numbers whose sum or product is hard to round.

    Ties and their neighbours, lost bits below them, cancellation, carries into the exponent, and mantissas of ones.
    No sum of float32 meets a subnormal number, which devices may flush; those of float64 keep them everywhere. Products
    and their factors are above the smallest normal number, because smaller ones count as zero.

    Returns
    -------
    ndarray
        Of shape (pairs, 2).
    """
    kind = np.dtype(dtype)
    info = np.finfo(kind)
    mantissa_bits, bias, u = info.nmant, info.maxexp - 1, np.uint64
    words = random_words(8 * _PAIRS, "hard", dtype, operator).reshape(8, _PAIRS)
    full = u((1 << mantissa_bits) - 1)
    # Mantissas that end with zeros, together as many as make products one bit too long: ties.
    zeros = words[2] % u(mantissa_bits)
    zeros = np.stack([zeros, u(mantissa_bits) - zeros - words[3] % u(2)])
    few = ((words[:2] | u(1)) << zeros) & full
    choice = words[4] % u(4)  # 0: any mantissas; 1, 2: those; 3: neighbours of those
    neighbours = (few + words[4] // u(4) % u(3) - u(1)) & full
    mantissa = np.where(choice == 0, words[:2] & full, np.where(choice == 3, neighbours, few))
    first = words[5] % u(2 * bias - 1) + u(1)
    if operator == "sum":  # near enough that both count, or cancel
        other = first.astype(np.int64) + (words[6] % u(2 * mantissa_bits + 9)).astype(np.int64) - (mantissa_bits + 4)
    else:  # anywhere, so that the product's exponent is
        other = (words[6] % u(2 * bias + mantissa_bits)).astype(np.int64) + bias - first.astype(np.int64)
    exponents = np.stack([first, np.clip(other, 0, 2 * bias).astype(np.uint64)])
    signs = np.stack([words[7] & u(1), words[7] >> u(1) & u(1)]) << u(8 * kind.itemsize - 1)
    pairs = (signs | exponents << u(mantissa_bits) | mantissa).astype(f"u{kind.itemsize}").view(kind).T
    if operator == "product":
        with np.errstate(over="ignore", under="ignore"):
            least = np.abs(np.append(pairs, np.multiply.reduce(pairs, axis=1, keepdims=True), axis=1)).min(axis=1)
        pairs = pairs[least > info.smallest_normal]
    elif dtype == "float32":
        pairs = pairs[~reference.meets_subnormals(pairs, operator, axis=1)]
    ones = 2.0 ** np.arange(1, mantissa_bits + 2) - 1
    return np.concatenate([pairs, np.stack([ones, ones], axis=1).astype(kind)])


def _run(
    device: Device,
    problem: ScanProblem | ElementwiseProblem,
    x: NDArray[Any],
    out: NDArray[Any],
    kernel: str | None = None,
) -> None:
    """Compute with packed input, and with output from the start of memory that `out` is the whole of."""
    with device.lock:
        source, target = device.allocate(x.nbytes), device.allocate(out.nbytes)
        try:
            device.upload(source, 0, x)
            device.run(problem, source, target, kernel=kernel)
            device.download(target, 0, out)
        finally:
            source.release()
            target.release()


def _subnormals(device: Device) -> tuple[str, bool | None]:
    keeps = device.subnormals()
    said = ", ".join(f"{operator}s {'keep' if keeps[operator] else 'flush'} them" for operator in _OPERATORS)
    return f"float32 {said}; those of float64 and float16 are kept everywhere", None


def _float64(device: Device) -> tuple[str, bool | None]:
    return "the device's own" if device.limits.float64 else "on 32-bit words", None


def _float16(device: Device) -> tuple[str, bool | None]:
    has = "shader-f16" in device.description.features
    return f"the adapter has {'' if has else 'no '}shader-f16, which no kernel uses", None


def _exceptional(device: Device) -> tuple[str, bool | None]:
    """Compare what NaN, infinities, overflow and zeros give with NumPy."""
    wrong = []
    for dtype in ("float16", "float32", "float64"):
        largest = np.finfo(dtype).max
        values = np.array([np.nan, -np.nan, np.inf, -np.inf, largest, -largest, 1.5, -1.5, 0.0, -0.0], dtype)
        pairs = np.stack([np.repeat(values, values.size), np.tile(values, values.size)], axis=1)
        for operator in _OPERATORS:
            difference = _first_wrong(device, pairs, operator)
            if difference:
                wrong.append(f"{_WORDS[operator]} of {dtype}: {difference}")
    return "; ".join(wrong) or "NaN, infinity, overflow and the sign of zero are as in IEEE 754", not wrong


def _correctly_rounded(device: Device, operator: str, dtype: str) -> tuple[str, bool | None]:
    pairs = hard_pairs(dtype, operator)
    difference = _first_wrong(device, pairs, operator)
    return difference or f"correctly rounded in all of {len(pairs)} hard cases", not difference


def _first_wrong(device: Device, pairs: NDArray[Any], operator: str) -> str:
    """Describe the first pair whose result is not NumPy's; return an empty text if there is none."""
    ufunc, layout, result = _OPERATORS[operator], Layout.packed(pairs.shape), np.empty_like(pairs)
    with np.errstate(all="ignore"):
        expected = np.stack([pairs[:, 0], ufunc(pairs[:, 0], pairs[:, 1])], axis=1)
    _run(device, scan_problem(by_dtype(pairs.dtype), Operator(operator), layout, layout, axis=1), pairs, result)
    bits = f"u{pairs.itemsize}"
    wrong = (result.view(bits) != expected.view(bits)) & ~(np.isnan(result) & np.isnan(expected))
    if not wrong.any():
        return ""
    row = int(wrong.any(axis=1).argmax())

    def shown(value: Any) -> str:
        return f"{value!s} (0x{value.view(bits):0{2 * value.itemsize}x})"

    numbers = " and ".join(map(shown, pairs[row]))
    return (
        f"{int(wrong.any(axis=1).sum())} of {len(pairs)} pairs are wrong; {ufunc.__name__} of {numbers} gives "
        f"{shown(result[row, 1])}, not {shown(expected[row, 1])}"
    )


def _opaque(device: Device) -> tuple[str, bool | None]:
    """Compare scans of float32 with and without hiding the float operations of the order from the compiler.

    Only float32, because this tells what a compiler does and not whether results are right, and drivers take long to
    compile.
    """
    differing = []
    limits = device.limits
    for operator in _OPERATORS:
        x = elements("plain", "float32", (3, 9001), operator)  # strided, as most cases are
        layout = Layout.packed(x.shape)
        problem = scan_problem(by_name("float32"), Operator(operator), layout, layout, axis=1)
        results = []
        with device.lock:
            for opaque in (True, False):
                try:
                    device.limits = replace(limits, opaque=opaque)
                    results.append(_kernels(device, problem, x))
                finally:
                    device.limits = limits
        if results[0] != results[1]:
            differing.append(operator)
    if differing:
        return f"it changes the order of operations that it can see ({', '.join(differing)}), so they are hidden", None
    return "it leaves the order of operations alone in two kernels, even where they are not hidden", None


def _kernels(device: Device, problem: ScanProblem, x: NDArray[Any]) -> list[bytes]:
    """Compute with the two kernels that compile fastest. The others fold runs with the same functions."""
    results = []
    for kernel in ("slices", "rows"):
        out = np.empty_like(x)
        _run(device, problem, x, out, kernel)
        results.append(out.tobytes())
    return results


def _subgroup_size(device: Device) -> tuple[str, bool | None]:
    from ..runtime.measured import measure_subgroup_sizes

    sizes = " and ".join(map(str, measure_subgroup_sizes(device.description)))
    return f"{sizes or 'the adapter gives no device with subgroups'}; no kernel depends on it", None


def _atomics(device: Device) -> tuple[str, bool | None]:
    """Have invocations and workgroups write the bytes of the same words."""
    x = elements("plain", "uint32", (200_001,))
    problem = convert_problem(
        by_name("uint32"), by_name("uint8"), Layout.packed(x.shape), Layout.packed(x.shape, offset=1)
    )
    for _ in range(3):
        out = np.empty(x.size + 1, np.uint8)
        _run(device, problem, x, out)
        lost = int((out[1:] != x.astype(np.uint8)).sum())
        if lost:
            return f"{lost} of {x.size} bytes are lost where workgroups write to the same words", False
    return "no byte is lost where workgroups write to the same words", True
