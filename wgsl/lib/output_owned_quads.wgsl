// Slot <output>: elements of 32 or 64 bits, in vectors of four words that one invocation has to itself.

override output_log2_bits: u32 = 5u;

@group(0) @binding(2) var<storage, read_write> output_quads: array<vec4<u32>>;

fn store_bits(element: u32, bits: vec2<u32>) {
    if (output_log2_bits == 6u) {
        output_quads[element >> 1u][2u * (element & 1u)] = bits.x;
        output_quads[element >> 1u][2u * (element & 1u) + 1u] = bits.y;
    } else {
        output_quads[element >> 2u][element & 3u] = bits.x;
    }
}
