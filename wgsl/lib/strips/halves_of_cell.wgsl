// Two adjacent columns of 16 bits in a word, of an invocation in a strip. Needs <element>.

fn first_cell(words: vec2<u32>) -> Accumulator {
    return decode(vec2<u32>(words.x & 0xffffu, 0u));
}

fn second_cell(words: vec2<u32>) -> Accumulator {
    return decode(vec2<u32>(words.x >> 16u, 0u));
}

fn cell_bits(a: Accumulator, b: Accumulator) -> u32 {
    return (encode(a).x & 0xffffu) | (encode(b).x << 16u);
}
