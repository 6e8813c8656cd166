// Slot <input>: the input tensor has a binding of its own, read two words at a time.

@group(0) @binding(1) var<storage, read> input_pairs: array<vec2<u32>>;

fn input_pair(index: u32) -> vec2<u32> {
    return input_pairs[index];
}
