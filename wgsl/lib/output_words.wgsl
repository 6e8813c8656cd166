// Slot <output>: elements of 32 or 64 bits. No two invocations share a word.

override output_log2_bits: u32 = 5u;

@group(0) @binding(2) var<storage, read_write> output_words: array<u32>;

fn output_word(index: u32) -> u32 {
    return output_words[index];
}

fn set_output_word(index: u32, word: u32) {
    output_words[index] = word;
}

fn store_bits(element: u32, bits: vec2<u32>) {
    if (output_log2_bits == 6u) {
        output_words[2u * element] = bits.x;
        output_words[2u * element + 1u] = bits.y;
    } else {
        output_words[element] = bits.x;
    }
}

// Puts the bits of `mask` into a word: all of it, as no element is smaller.
fn put_bits(index: u32, bits: u32, mask: u32) {
    store_bits(index, vec2<u32>(bits, 0u));
}
