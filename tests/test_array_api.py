"""What the Python array API standard, version 2024.12, says of the functions that dmlgpu has; complex types left out.

Quotations are of https://data-apis.org/array-api/2024.12, from the pages of `cumulative_sum`, `cumulative_prod` and
`round`, and of the array object. The last test runs the standard's own suite, which no package index has.
"""

from __future__ import annotations

import inspect
import math
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

import dmlgpu
from dmlgpu import reference

from . import array_api_namespace as xp

REAL = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
"""The standard's real numeric types."""
SCANS = {"cumulative_sum": (np.add, 0), "cumulative_prod": (np.multiply, 1)}

Array = NDArray[Any]


def elements(dtype: str) -> st.SearchStrategy[Any]:
    """Draw integers of any size, and floats whose sums and products of a few are exact, NaN, infinite or zeros."""
    kind = np.dtype(dtype)
    if kind.kind != "f":
        info = np.iinfo(kind)
        return st.integers(int(info.min), int(info.max)) | st.integers(0, 3)
    return st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, math.inf, -math.inf, math.nan])


@st.composite
def drawn(draw: st.DrawFn) -> tuple[Array, int | None, str | None, bool]:
    """Draw an array, an axis, a type of the result and whether to put the identity first."""
    dtype = draw(st.sampled_from(REAL))
    shape = draw(array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5))
    x = draw(arrays(dtype, shape, elements=elements(dtype)))
    axes = st.integers(-x.ndim, x.ndim - 1)
    axis = draw(axes | st.none() if x.ndim == 1 else axes)
    floats = np.dtype(dtype).kind == "f"
    wanted = draw(st.none() | st.sampled_from([one for one in REAL if (np.dtype(one).kind == "f") or not floats]))
    return x, axis, wanted, draw(st.booleans())


@pytest.mark.parametrize("name", SCANS)
@given(case=drawn())
@settings(max_examples=100, deadline=None)
def test_scans(name: str, case: tuple[Array, int | None, str | None, bool]) -> None:
    x, axis, dtype, initial = case
    ufunc, identity = SCANS[name]
    out = getattr(xp, name)(x, axis=axis, dtype=dtype, include_initial=initial)
    along = 0 if axis is None else axis % x.ndim  # "If an axis is not specified for a one-dimensional array, ..."
    # "the returned array must have the same data type as x, unless x has an integer data type supporting a smaller
    # range of values than the default integer data type"; unsigned ones then have as many bits as the default one.
    default = {"i": "int64", "u": "uint64"}.get(x.dtype.kind, x.dtype.name)
    assert out.dtype == np.dtype(dtype or default)
    # "If include_initial is True, the returned array must have the same shape as x, except the size of the axis along
    # which to compute the cumulative sum must be N+1."
    assert out.shape == tuple(size + (initial and i == along) for i, size in enumerate(x.shape))
    moved = np.moveaxis(out, along, 0)
    if initial:
        # "the initial value must be the additive identity (i.e., zero)"; of products "(i.e., one)".
        assert (moved[0] == identity).all()
        moved = moved[1:]
    # "If the data type (either specified or resolved) differs from the data type of x, the input array should be cast
    # to the specified data type before computing the sum", and "special cases must be handled as if the operation is
    # implemented by successive application of" + or *: the elements drawn make this the whole of the results.
    with np.errstate(all="ignore"):
        expected = ufunc.accumulate(np.moveaxis(x.astype(out.dtype), along, 0), axis=0, dtype=out.dtype)
    assert reference.first_difference(np.ascontiguousarray(moved), np.ascontiguousarray(expected)) is None


@given(x=st.sampled_from(REAL).flatmap(lambda name: arrays(name, array_shapes(min_dims=0, min_side=0, max_dims=4))))
@settings(max_examples=200, deadline=None)
def test_round(x: Array) -> None:
    out = xp.round(x)
    assert (out.dtype, out.shape) == (x.dtype, x.shape)  # "must have the same data type as x"
    for element, found in zip(x.flat, out.flat, strict=True):
        if element != element:
            assert found != found  # "If x_i is NaN, the result is NaN."
        elif math.isinf(element) or element == int(element):
            # "If x_i is already integer-valued, the result is x_i"; infinities and zeros of either sign are themselves.
            assert (found, math.copysign(1, found)) == (element, math.copysign(1, element))
        else:
            # "Rounds ... to the nearest integer-valued number"; "If two integers are equally close to x_i, the result
            # is the even integer closest to x_i", which is what Python's own function says.
            assert (float(found), math.copysign(1, found)) == (float(round(float(element))), math.copysign(1, element))


def test_signatures() -> None:
    """The standard's parameters, with its kinds and defaults; more of them come after."""
    for function in (dmlgpu.cumulative_sum, dmlgpu.cumulative_prod):
        parameters = inspect.signature(function).parameters
        assert list(parameters)[:4] == ["x", "axis", "dtype", "include_initial"]
        assert parameters["x"].kind is inspect.Parameter.POSITIONAL_ONLY
        assert {parameters[name].kind for name in list(parameters)[1:]} == {inspect.Parameter.KEYWORD_ONLY}
        assert [parameters[name].default for name in ("axis", "dtype", "include_initial")] == [None, None, False]
    first, *others = inspect.signature(dmlgpu.round).parameters.values()
    assert (first.name, first.kind) == ("x", inspect.Parameter.POSITIONAL_ONLY)
    assert {one.kind for one in others} == {inspect.Parameter.KEYWORD_ONLY}
    assert inspect.Parameter.empty not in {one.default for one in others}


@given(x=st.sampled_from(REAL).flatmap(lambda name: arrays(name, array_shapes(min_dims=0, min_side=0, max_dims=4))))
@settings(max_examples=100, deadline=None)
def test_attributes_of_arrays(x: Array) -> None:
    array = dmlgpu.asarray(x)
    assert (array.dtype, array.shape, array.ndim, array.size) == (x.dtype, x.shape, x.ndim, x.size)
    assert array.to_device(array.device).device is array.device
    if x.ndim >= 2:  # "The array must have at least two dimensions"; "the last two dimensions (axes) are permuted"
        assert reference.same_bits(array.mT.numpy(), np.ascontiguousarray(x.mT))
    if x.ndim == 2:  # "The array must be two-dimensional"
        assert reference.same_bits(array.T.numpy(), np.ascontiguousarray(x.T))
    assert reference.same_bits(np.from_dlpack(array), x)
    assert array.__dlpack_device__() == (1, 0)  # kDLCPU


def test_the_standards_own_suite(tmp_path: Path) -> None:
    """Names, signatures, special cases and values, on the device; real_dtypes stand for all that are numeric."""
    with tarfile.open(Path(__file__).parent / "data" / "array_api_tests.tar.xz") as archive:
        # Python has filters from 3.11.4 on.
        archive.extractall(tmp_path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    settings = {
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "ARRAY_API_TESTS_MODULE": "tests.array_api_namespace",
        "ARRAY_API_TESTS_VERSION": xp.__array_api_version__,
    }
    # Without warnings: the suite reads the standard's text and warns of its own gaps.
    options = ["-p", "tests.array_api_real", "-W", "ignore", "--disable-deadline", "--max-examples=1000"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "array_api_tests", "-k", " or ".join(xp.__all__)],
        cwd=tmp_path,
        env=os.environ | settings,
        capture_output=True,
        text=True,
    )
    # The others are of what NumPy has besides, which differs by its version.
    assert re.search(r"= 16 passed, \d+ deselected in ", done.stdout), done.stdout + done.stderr
    assert done.returncode == 0
