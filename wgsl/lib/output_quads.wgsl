// Slot <output>: words that no two invocations share, written four at a time.

override output_log2_bits: u32 = 5u;

@group(0) @binding(2) var<storage, read_write> output_quads: array<vec4<u32>>;

fn store_quad(index: u32, words: vec4<u32>) {
    output_quads[index] = words;
}
