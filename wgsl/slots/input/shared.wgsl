// Slot <input>: the input tensor has a binding of its own, of the output's buffer. WebGPU tracks usage by buffer, so
// both bindings are read_write; their ranges don't meet.

@group(0) @binding(1) var<storage, read_write> input_units: array<Unit>;

fn input_unit(index: u32) -> Unit {
    return input_units[index];
}
