"""The compiled pipelines of a device. Each is compiled when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import wgpu

from .. import shaders
from ..errors import ShaderError
from ..planning.dispatch import PipelineKey
from .wgpu_private import compiles_side_by_side

__all__ = ["Pipeline", "Pipelines"]


@dataclass(frozen=True)
class Pipeline:
    """A compute pipeline and the layout of its bind group."""

    pipeline: Any
    layout: Any


class Pipelines:
    """A cache of pipelines."""

    def __init__(self, gpu_device: Any) -> None:
        self._gpu_device = gpu_device
        self._is_side_by_side = compiles_side_by_side(gpu_device)
        self._pipelines: dict[PipelineKey, Pipeline] = {}
        self._modules: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[shaders.Shader, Any]] = {}
        self._layouts: dict[tuple[tuple[int, str], ...], tuple[Any, Any]] = {}

    @property
    def compiled(self) -> int:
        """How many pipelines there are."""
        return len(self._pipelines)

    def get_all(self, keys: Iterable[PipelineKey]) -> list[Pipeline]:
        """Return the pipelines for keys, as `get` does; those that are missing are compiled at the same time."""
        wanted = list(keys)
        missing = [key for key in dict.fromkeys(wanted) if key not in self._pipelines]
        if len(missing) > 1 and self._is_side_by_side:
            # An error that is suppressed here comes again from `get`; RuntimeError: there can be no more threads.
            with suppress(ShaderError, RuntimeError), ThreadPoolExecutor(len(missing)) as threads:
                for key in missing:
                    self._module(key)
                    self._layout(key)
                list(threads.map(self._compile, missing))
        return [self.get(key) for key in wanted]

    def get(self, key: PipelineKey) -> Pipeline:
        """Return the pipeline for a key.

        Raises
        ------
        ShaderError
            If the shader does not compile; the message names file, line and column.
        """
        if key not in self._pipelines:
            self._compile(key)
        return self._pipelines[key]

    def _compile(self, key: PipelineKey) -> None:
        shader, module = self._module(key)
        layout, pipeline_layout = self._layout(key)
        try:
            pipeline = self._gpu_device.create_compute_pipeline(
                layout=pipeline_layout,
                compute={"module": module, "entry_point": "main", "constants": dict(key.constants)},
            )
        except wgpu.GPUError as error:
            raise ShaderError(f"{shader.name} does not compile for {key}: {error}") from error
        self._pipelines[key] = Pipeline(pipeline, layout)

    def _module(self, key: PipelineKey) -> tuple[shaders.Shader, Any]:
        name = (key.kernel, key.slots)
        if name not in self._modules:
            shader = shaders.resolve(key.kernel, dict(key.slots))
            try:
                module = self._gpu_device.create_shader_module(label=key.kernel, code=shader.source)
            except wgpu.GPUError as error:
                raise ShaderError(f"{shader.name} does not compile: {shader.locate(str(error))}") from error
            self._modules[name] = (shader, module)
        return self._modules[name]

    def _layout(self, key: PipelineKey) -> tuple[Any, Any]:
        bindings = tuple(key.bindings.items())
        if bindings not in self._layouts:
            entries = [
                {"binding": number, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}}
                for number, kind in bindings
            ]
            layout = self._gpu_device.create_bind_group_layout(entries=entries)
            self._layouts[bindings] = (layout, self._gpu_device.create_pipeline_layout(bind_group_layouts=[layout]))
        return self._layouts[bindings]
