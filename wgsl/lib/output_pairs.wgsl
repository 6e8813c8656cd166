// Slot <output>: words that no two invocations share, written two at a time.

override output_log2_bits: u32 = 5u;

@group(0) @binding(2) var<storage, read_write> output_pairs: array<vec2<u32>>;

fn set_output_pair(index: u32, words: vec2<u32>) {
    output_pairs[index] = words;
}
