// Slot <rows>: a row of the adjacent slices of one invocation is a vector of four words: 4 slices of 32 bits, 2 of 64.
// Needs quads as <input>, and output_owned_quads.

alias Row = vec4<u32>;

fn row_at(place: u32) -> Row {
    return input_quad(place >> (7u - input_log2_bits));
}

fn element_of(row: Row, column: u32) -> Accumulator {
    if (columns == 2u) {
        return decode(select(row.xy, row.zw, column == 1u));
    }
    return decode(vec2<u32>(row[column], 0u));
}

fn store_row(place: u32, a: Accumulator, b: Accumulator, c: Accumulator, d: Accumulator) {
    var words = vec4<u32>(encode(a), encode(b));
    if (columns == 4u) {
        words = vec4<u32>(encode(a).x, encode(b).x, encode(c).x, encode(d).x);
    }
    output_quads[place >> (7u - output_log2_bits)] = words;
}
