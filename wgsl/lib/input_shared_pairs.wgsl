// Slot <input>: the input tensor has a binding of its own, of the output's buffer, read two words at a time. WebGPU
// tracks usage by buffer, so both bindings are read_write; their ranges don't meet.

@group(0) @binding(1) var<storage, read_write> input_pairs: array<vec2<u32>>;

fn input_pair(index: u32) -> vec2<u32> {
    return input_pairs[index];
}
