// Slot <cells>: of a row, an invocation in a strip has the integers of a word, which may begin anywhere in memory.
// Needs <input>, <output> and <element>.

#import "lib/strips/unaligned_rows.wgsl"

fn slice_of(strip: u32, beside: u32, which: u32) -> u32 {
    return first_slice(strip, beside);
}

fn parts_of(first: u32) -> u32 {
    return slices_there(first);
}

fn first_cell(words: vec2<u32>) -> Accumulator {
    return decode(words);
}

// There is none: strips of these have one cell an invocation.
fn second_cell(words: vec2<u32>) -> Accumulator {
    return decode(words);
}

fn cell_bits(a: Accumulator, b: Accumulator) -> u32 {
    return encode(a).x;
}
