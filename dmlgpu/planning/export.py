"""Pure: a plan as data that a program without Python can run, such as a page in a browser.

docs/export.md says what the data means, and how to run it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike

from .. import shaders
from ..arguments import choice, count, flag
from ..errors import ArgumentError
from ..layout import ceil_div
from ..shaders import Shader
from .dispatch import Pass, PipelineKey, Plan
from .kernels import check_pass
from .plan import plan_problem
from .problem import ElementwiseProblem, ScanOptions, problem_of
from .windows import Limits

__all__ = ["FORMAT", "LIMITS", "VERSION", "exported_operator", "exported_plan", "limits_of_webgpu"]

FORMAT: Final = "dmlgpu plan"
VERSION: Final = 1
"""Of the format: another one where a program that runs plans of this one could not run them."""

LIMITS: Final[Mapping[str, tuple[str, ...]]] = {
    "maxStorageBufferBindingSize": ("binding_bytes",),
    "maxComputeWorkgroupsPerDimension": ("workgroups", "rows"),
    "minStorageBufferOffsetAlignment": ("offset_alignment",),
}
"""The limits of WebGPU that plans depend on, and the fields of `Limits` that they are."""

_SCRATCH = "scratch"


def limits_of_webgpu(given: Mapping[str, int]) -> Limits:
    """Return limits from those of WebGPU, by its names; its defaults where there is none.

    Raises
    ------
    ArgumentError, ArrayTypeError
        If a name is none of `LIMITS`, or no plan can keep to a limit.

    Examples
    --------
    >>> limits_of_webgpu({"maxStorageBufferBindingSize": 2**30}).binding_bytes
    1073741824
    """
    limits = Limits()
    values: dict[str, Any]
    for name, value in given.items():
        fields = choice(name, "the name of a limit", LIMITS)
        values = dict.fromkeys(fields, count(value, name))
        try:
            limits = replace(limits, **values)
        except ArgumentError as error:
            raise ArgumentError(f"{name} is no limit for a plan: {error}") from error
    return limits


def exported_operator(
    operator: str,
    shape: SupportsIndex | Sequence[SupportsIndex],
    *,
    axis: SupportsIndex | None = None,
    dtype: DTypeLike = "float32",
    exclusive: bool = False,
    reverse: bool = False,
    precision: str = "default",
    monotone: bool = False,
    mode: str = "half_even",
    in_place: bool = False,
    limits: Limits | None = None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return an operator as data for programs in other languages: what ``dmlgpu export`` writes.

    Parameters
    ----------
    operator : {"cumsum", "cumprod", "round"}
        What to compute.
    shape : int or sequence of int
        Of input and output, which lie in C order without gaps.
    axis, dtype, exclusive, reverse, precision, monotone, mode
        As of `dmlgpu.explain`.
    in_place : bool
        Whether results take the places of elements.
    limits : Limits, optional
        Those of the devices that the plan is for; by default WebGPU's defaults, which every device has. Whatever they
        say, the shaders need no feature.

    Returns
    -------
    (dict, dict)
        The plan in terms of JSON, as docs/export.md describes it, and the WGSL of its shaders by their names.

    Raises
    ------
    ArgumentError, ArrayTypeError, AxisError
        If the arguments mean no operator, or no plan keeps to the limits.

    Examples
    --------
    >>> plan, shaders = exported_operator("cumsum", (4, 1000), axis=1, exclusive=True)
    >>> plan["buffers"], len(plan["passes"]), [*shaders] == [plan["passes"][0]["shader"]]
    ({'input': 16000, 'output': 16000, 'scratch': 4}, 1, True)
    """
    options = ScanOptions.checked(exclusive, reverse, precision, monotone)
    problem, sizes, along = problem_of(operator, shape, axis, dtype, options, mode)
    one_buffer = flag(in_place, "in_place")
    within = replace(Limits() if limits is None else limits, float64=False)
    plan = plan_problem(problem, within, one_buffer=one_buffer)
    nbytes = ceil_div(math.prod(sizes) * problem.source.itemsize, 4) * 4
    names = ("output",) if one_buffer else ("input", "output")
    exported, texts = exported_plan(plan, dict.fromkeys(names, nbytes))
    head: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "operator": str(operator),
        "type": problem.source.name,
        "shape": list(sizes),
    }
    if isinstance(problem, ElementwiseProblem):
        assert problem.mode is not None
        head |= {"mode": problem.mode.name.lower()}
    else:
        head |= {
            "axis": along,
            **options._asdict(),
            "precision": options.precision.value,
        }
    return {**head, "limits": _needed(exported, within), **exported}, texts


def _needed(exported: Mapping[str, Any], limits: Limits) -> dict[str, int]:
    """Return the limits that a device must have to run a plan, by WebGPU's names."""
    bindings = [binding for one in exported["passes"] for binding in one["bindings"] if "buffer" in binding]
    return {
        "maxBufferSize": max(exported["buffers"].values()),
        "maxStorageBufferBindingSize": max(binding["size"] for binding in bindings),
        "maxComputeWorkgroupsPerDimension": max(max(one["grid"]) for one in exported["passes"]),
        "minStorageBufferOffsetAlignment": limits.offset_alignment,
    }


def exported_plan(plan: Plan, nbytes: Mapping[str, int]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a plan in terms of JSON, and the shaders that it names.

    Parameters
    ----------
    plan : Plan
        What to export.
    nbytes : mapping of str to int
        The sizes of the buffers "input" and "output"; only of "output" where the plan is for one buffer.

    Returns
    -------
    (dict, dict)
        The plan, with

        - ``buffers``: the sizes in bytes of "input" (unless it is in "output"), "output" and "scratch";
        - ``passes``: the dispatches, in order. Each has the name of its ``shader``, whose entry point is ``main``; the
          values of its override ``constants``; its ``uniforms`` as 32-bit words; its ``grid`` of workgroups; and its
          ``bindings`` in group 0: each a number, a type in WebGPU's words and, but for the uniforms, the name of a
          buffer with offset and size in bytes.

        And the shaders' WGSL by name. A name stands for a text: another text has another name.

    Examples
    --------
    >>> from dmlgpu.dtypes import by_name
    >>> from dmlgpu.planning.plan import plan_problem
    >>> from dmlgpu.layout import Layout
    >>> from dmlgpu.planning.problem import Operator, scan_problem
    >>> from dmlgpu.planning.windows import Limits
    >>> layout = Layout.packed((2, 100))
    >>> problem = scan_problem(by_name("float32"), Operator.SUM, layout, layout, axis=1)
    >>> plan, shaders = exported_plan(plan_problem(problem, Limits()), {"input": 800, "output": 800})
    >>> plan["buffers"]["output"], plan["passes"][0]["bindings"][1]
    (800, {'binding': 1, 'type': 'read-only-storage', 'buffer': 'input', 'offset': 0, 'size': 800})
    """
    texts: dict[str, str] = {}
    passes = []
    for one in plan.passes:
        check_pass(one)
        name, shader = _shader(one.pipeline)
        texts[name] = shader.source
        passes.append(
            {
                "shader": name,
                "constants": dict(one.pipeline.constants),
                "uniforms": np.frombuffer(one.uniforms, np.uint32).tolist(),
                "grid": list(one.grid),
                "bindings": _bindings(one, nbytes),
            }
        )
    return {"buffers": {**nbytes, _SCRATCH: plan.state_bytes}, "passes": passes}, texts


def _bindings(one: Pass, nbytes: Mapping[str, int]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number, kind in one.pipeline.bindings.items():
        binding: dict[str, Any] = {"binding": number, "type": kind}
        if number == 1:
            assert one.input is not None
            buffer = "input" if "input" in nbytes else "output"
            binding |= {"buffer": buffer, "offset": one.input.offset, "size": one.input.size}
        elif number == 2:
            assert one.output is not None
            binding |= {"buffer": "output", "offset": one.output.offset, "size": one.output.size}
        elif number == 3:
            binding |= {"buffer": _SCRATCH, "offset": 0, "size": one.state_bytes}
        found.append(binding)
    return found


@lru_cache(maxsize=1024)
def _shader(key: PipelineKey) -> tuple[str, Shader]:
    """Return the shader of a pipeline, and its name."""
    shader = shaders.resolve(key.kernel, dict(key.slots))
    digest = hashlib.sha256(shader.source.encode()).hexdigest()
    return f"{shader.name}.{digest[:12]}.wgsl", shader
