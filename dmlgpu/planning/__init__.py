"""Pure: from two tensors and an operator to the passes of a dispatch. Nothing here knows a device or wgpu."""
