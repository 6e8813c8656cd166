// Slot <cells>: the same as slots/cells/staged.wgsl of columns of 64 bits, of which an invocation has one.
// Needs <input>, <output>, <element> and lib/strips/stretch.wgsl.

#import "lib/strips/staged.wgsl"

const SHELF = 256u;

fn first_cell(words: vec2<u32>) -> Accumulator {
    return decode(words);
}

// There is none.
fn second_cell(words: vec2<u32>) -> Accumulator {
    return decode(words);
}

// A quarter of an invocation's elements of a turn: the one for a place of the stage.
fn fetch_share(lane: u32, number: u32, at: Stored) -> vec2<u32> {
    return input_unit(element_at(number * LANES + lane, at));
}

fn leave_share(lane: u32, number: u32, bits: vec2<u32>) {
    leave(number * LANES + lane, bits);
}

fn bits_of_row(row: u32, beside: u32) -> vec2<u32> {
    return bits_left(place_of_row(row, min(beside, params.across - 1u), params.input_axis_stride));
}

fn leave_row(row: u32, beside: u32, has_other: bool, a: Accumulator, b: Accumulator) {
    leave(place_of_row(row, beside, params.output_axis_stride), encode(a));
}

fn write_turn(lane: u32, at: Stored) {
    for (var number = lane; number < at.count; number += LANES) {
        set_output_unit(at.low + number, bits_left(at.place + number));
    }
}
