// Slot <output>: words that no two invocations share, written four at a time.

override output_log2_bits: u32 = 5u;

@group(0) @binding(2) var<storage, read_write> output_quads: array<vec4<u32>>;

fn store_quad(index: u32, words: vec4<u32>) {
    output_quads[index] = words;
}

fn store_bits(element: u32, bits: vec2<u32>) {
    if (output_log2_bits == 6u) {
        output_quads[element >> 1u][2u * (element & 1u)] = bits.x;
        output_quads[element >> 1u][2u * (element & 1u) + 1u] = bits.y;
    } else if (output_log2_bits == 5u) {
        output_quads[element >> 2u][element & 3u] = bits.x;
    } else {
        // Not atomic: the plan sees to it that an invocation owns whole quads.
        let index = element >> (5u - min(output_log2_bits, 5u));
        let offset = (element << output_log2_bits) & 31u;
        let old = output_quads[index >> 2u][index & 3u];
        output_quads[index >> 2u][index & 3u] = insertBits(old, bits.x, offset, 1u << output_log2_bits);
    }
}
