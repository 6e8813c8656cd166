// Slot <cells>: of a row, an invocation of scan_strips has one column of 64 bits, two words.
// Needs <input>, <output> and <element>.

#import "lib/input_bits.wgsl"

const slices_of_cell = 1u;

// An invocation's slice.
fn slice_of(strip: u32, beside: u32, which: u32) -> u32 {
    return strip * lanes + beside;
}

fn load_cells(place: u32, other: u32) -> vec2<u32> {
    return vec2<u32>(input_word(2u * place), input_word(2u * place + 1u));
}

fn first_cell(words: vec2<u32>) -> Accumulator {
    return decode(words);
}

fn second_cell(words: vec2<u32>) -> Accumulator {
    return identity();
}

fn store_cells(place: u32, other: u32, has_other: bool, a: Accumulator, b: Accumulator) {
    let words = encode(a);
    set_output_word(2u * place, words.x);
    set_output_word(2u * place + 1u, words.y);
}
