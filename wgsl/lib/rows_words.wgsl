// Slot <rows>: a row of the adjacent slices of one invocation is a word: 4 slices of 8 bits, 2 of 16. Needs
// output_owned.

alias Row = u32;

fn row_at(place: u32) -> Row {
    return input_unit(place >> (5u - input_log2_bits));
}

fn element_of(row: Row, column: u32) -> Accumulator {
    return decode(vec2<u32>(extractBits(row, column << input_log2_bits, 1u << input_log2_bits), 0u));
}

fn store_row(place: u32, a: Accumulator, b: Accumulator, c: Accumulator, d: Accumulator) {
    var word = (encode(a).x & 0xffffu) | (encode(b).x << 16u);
    if (columns == 4u) {
        word = (encode(a).x & 0xffu) | ((encode(b).x & 0xffu) << 8u);
        word |= ((encode(c).x & 0xffu) << 16u) | (encode(d).x << 24u);
    }
    set_output_unit(place >> (5u - output_log2_bits), word);
}
