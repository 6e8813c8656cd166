// Slot <output>: elements of 8 or 16 bits, in words that one invocation has to itself.

override output_log2_bits: u32 = 3u;

@group(0) @binding(2) var<storage, read_write> output_words: array<u32>;

fn output_word(index: u32) -> u32 {
    return output_words[index];
}

fn set_output_word(index: u32, word: u32) {
    output_words[index] = word;
}

fn store_bits(element: u32, bits: vec2<u32>) {
    let index = element >> (5u - min(output_log2_bits, 5u));
    let offset = (element << output_log2_bits) & 31u;
    output_words[index] = insertBits(output_words[index], bits.x, offset, 1u << min(output_log2_bits, 4u));
}
