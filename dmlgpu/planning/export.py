"""Pure: a plan as data that a program without Python can run, such as a page in a browser."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from .. import shaders
from ..shaders import Shader
from .dispatch import Pass, PipelineKey, Plan
from .kernels import check_pass

__all__ = ["exported_plan"]

_SCRATCH = "scratch"


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
