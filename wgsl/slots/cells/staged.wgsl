// Slot <cells>: of a row, an invocation in a strip has two of a few columns, of 8, 16 or 32 bits, without a gap between
// columns or rows: neighbours read and write neighbouring elements or words, which go through workgroup memory into
// runs of 16 rows and back. Needs <input>, <output>, <element> and lib/strips/stretch.wgsl.

#import "lib/memory/load_bits.wgsl"
#import "lib/strips/staged.wgsl"
#import "lib/tiles/turn_words.wgsl"

const SHELF = 512u;

fn first_cell(words: vec2<u32>) -> Accumulator {
    return decode(vec2<u32>(words.x, 0u));
}

fn second_cell(words: vec2<u32>) -> Accumulator {
    return decode(vec2<u32>(words.y, 0u));
}

// A quarter of an invocation's elements of a turn: those for two places of the stage.
fn fetch_share(lane: u32, number: u32, at: Stored) -> vec2<u32> {
    let near = 2u * number * LANES + lane;
    return vec2<u32>(
        load_bits(element_at(near, at)).x, load_bits(element_at(near + LANES, at)).x,
    );
}

fn leave_share(lane: u32, number: u32, bits: vec2<u32>) {
    let near = 2u * number * LANES + lane;
    leave(near, vec2<u32>(bits.x, 0u));
    leave(near + LANES, vec2<u32>(bits.y, 0u));
}

// Of an invocation's columns.
fn bits_of_row(row: u32, beside: u32) -> vec2<u32> {
    let stride = params.input_axis_stride;
    let other = min(beside + lanes, params.across - 1u);
    return vec2<u32>(
        bits_left(place_of_row(row, beside, stride)).x, bits_left(place_of_row(row, other, stride)).x,
    );
}

fn leave_row(row: u32, beside: u32, has_other: bool, a: Accumulator, b: Accumulator) {
    let stride = params.output_axis_stride;
    leave(place_of_row(row, beside, stride), encode(a));
    if (has_other) {
        leave(place_of_row(row, beside + lanes, stride), encode(b));
    }
}

fn write_turn(lane: u32, at: Stored) {
    store_words(lane, at.low, at.count, at.place, 1u);
}
