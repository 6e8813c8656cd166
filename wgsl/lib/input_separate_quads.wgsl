// Slot <input>: the input tensor has a binding of its own, read four words at a time.

@group(0) @binding(1) var<storage, read> input_quads: array<vec4<u32>>;

fn input_quad(index: u32) -> vec4<u32> {
    return input_quads[index];
}

fn input_word(index: u32) -> u32 {
    return input_quads[index >> 2u][index & 3u];
}
