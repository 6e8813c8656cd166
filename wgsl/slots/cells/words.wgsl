// Slot <cells>: of a row, an invocation in a strip has a word, or two as far apart as there are invocations beside
// each other: a column of 32 bits each, or those of a word of 8 or 16 bits, integers that are combined as they lie.
// Needs <input>, <output> and <element>.

#import "lib/strips/cell_rows.wgsl"

override slices_of_cell: u32 = 32u >> output_log2_bits;

// The first slice of an invocation's cell number `which`.
fn slice_of(strip: u32, beside: u32, which: u32) -> u32 {
    return ((strip * columns + which) * lanes + beside) * slices_of_cell;
}

fn load_cells(place: u32, other: u32) -> vec2<u32> {
    let shift = 5u - input_log2_bits;
    var words = vec2<u32>(input_unit(place >> shift), 0u);
    if (columns > 1u) {
        words.y = input_unit(other >> shift);
    }
    return words;
}

fn first_cell(words: vec2<u32>) -> Accumulator {
    return decode(vec2<u32>(words.x, 0u));
}

fn second_cell(words: vec2<u32>) -> Accumulator {
    return decode(vec2<u32>(words.y, 0u));
}

fn store_cells(place: u32, other: u32, has_other: bool, a: Accumulator, b: Accumulator) {
    let shift = 5u - output_log2_bits;
    set_output_unit(place >> shift, encode(a).x);
    if (columns > 1u && has_other) {
        set_output_unit(other >> shift, encode(b).x);
    }
}
