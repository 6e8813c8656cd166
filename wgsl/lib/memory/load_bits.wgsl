// An element's bit pattern, zero-extended to 64 bits (low word first).

fn load_bits(element: u32) -> vec2<u32> {
    if (input_log2_bits == 6u) {
        return vec2<u32>(input_word(2u * element), input_word(2u * element + 1u));
    }
    if (input_log2_bits == 5u) {
        return vec2<u32>(input_word(element), 0u);
    }
    let word = input_word(element >> (5u - min(input_log2_bits, 5u)));
    return vec2<u32>(extractBits(word, (element << input_log2_bits) & 31u, 1u << input_log2_bits), 0u);
}
