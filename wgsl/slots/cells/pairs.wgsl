// Slot <cells>: of a row, an invocation in a strip has two words: one column of 64 bits, or two cells beside each
// other, which are columns of 32 bits or words of 8 or 16 bits, integers that are combined as they lie.
// Needs <input>, <output> and <element>.

#import "lib/strips/cell_rows.wgsl"

// Those of a word, or the one of 64 bits.
override slices_of_cell: u32 = (32u >> output_log2_bits) + output_log2_bits / 6u;

// The first slice of an invocation's cell number `which`.
fn slice_of(strip: u32, beside: u32, which: u32) -> u32 {
    return ((strip * lanes + beside) * columns + which) * slices_of_cell;
}

fn load_cells(place: u32, other: u32) -> vec2<u32> {
    return input_unit(place >> (6u - input_log2_bits));
}

fn first_cell(words: vec2<u32>) -> Accumulator {
    return decode(words);
}

fn second_cell(words: vec2<u32>) -> Accumulator {
    return decode(vec2<u32>(words.y, 0u));
}

fn store_cells(place: u32, other: u32, has_other: bool, a: Accumulator, b: Accumulator) {
    var words = encode(a);
    if (columns > 1u) {
        words = vec2<u32>(encode(a).x, encode(b).x);
    }
    set_output_unit(place >> (6u - output_log2_bits), words);
}
