// Slot <unit>: tensors as arrays of 32-bit words.

@group(0) @binding(1) var<storage, read> input_units: array<u32>;
@group(0) @binding(2) var<storage, read_write> output_units: array<u32>;
