"""The compiled pipelines of a device. Each is compiled when it is first asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import wgpu

from .. import shaders
from ..errors import ShaderError
from ..planning.dispatch import PipelineKey

__all__ = ["Pipeline", "Pipelines"]


@dataclass(frozen=True)
class Pipeline:
    """A compute pipeline and the layout of its bind group."""

    pipeline: Any
    layout: Any


class Pipelines:
    """A cache of pipelines.

    Attributes
    ----------
    hits, misses : int
        The number of times that a pipeline was there, and that it had to be compiled.
    """

    def __init__(self, gpu_device: Any) -> None:
        self._gpu_device = gpu_device
        self._pipelines: dict[PipelineKey, Pipeline] = {}
        self._modules: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[shaders.Shader, Any]] = {}
        self._layouts: dict[tuple[tuple[int, str], ...], tuple[Any, Any]] = {}
        self.hits = 0
        self.misses = 0

    def get(self, key: PipelineKey) -> Pipeline:
        """Return the pipeline for a key.

        Raises
        ------
        ShaderError
            If the shader does not compile; the message names file, line and column.
        """
        found = self._pipelines.get(key)
        if found is not None:
            self.hits += 1
            return found
        self.misses += 1
        shader, module = self._module(key)
        layout, pipeline_layout = self._layout(tuple(key.bindings.items()))
        try:
            pipeline = self._gpu_device.create_compute_pipeline(
                layout=pipeline_layout,
                compute={"module": module, "entry_point": "main", "constants": dict(key.constants)},
            )
        except wgpu.GPUError as error:
            raise ShaderError(f"{shader.name} does not compile for {key}: {error}") from error
        made = self._pipelines[key] = Pipeline(pipeline, layout)
        return made

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

    def _layout(self, bindings: tuple[tuple[int, str], ...]) -> tuple[Any, Any]:
        if bindings not in self._layouts:
            entries = [
                {"binding": number, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}}
                for number, kind in bindings
            ]
            layout = self._gpu_device.create_bind_group_layout(entries=entries)
            self._layouts[bindings] = (layout, self._gpu_device.create_pipeline_layout(bind_group_layouts=[layout]))
        return self._layouts[bindings]
