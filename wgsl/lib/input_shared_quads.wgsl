// Slot <input>: as input_separate_quads, but of the output's buffer: both bindings are read_write.

@group(0) @binding(1) var<storage, read_write> input_quads: array<vec4<u32>>;

fn input_quad(index: u32) -> vec4<u32> {
    return input_quads[index];
}

fn input_word(index: u32) -> u32 {
    return input_quads[index >> 2u][index & 3u];
}
