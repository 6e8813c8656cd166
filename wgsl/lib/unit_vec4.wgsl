// Slot <unit>: tensors as arrays of vectors of four 32-bit words.

@group(0) @binding(1) var<storage, read> input_units: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> output_units: array<vec4<u32>>;
