"""Everything that touches wgpu: devices, pipelines, memory, execution."""
