// Slot <cells>: the same as slots/cells/staged.wgsl of columns of 64 bits, of which an invocation has one.
// Needs <input>, <output>, <element> and lib/strips/stretch.wgsl.

#import "lib/memory/input_bits.wgsl"
#import "lib/strips/staged.wgsl"

const SHELF = 256u;

fn first_cell(words: vec2<u32>) -> Accumulator {
    return decode(words);
}

// There is none.
fn second_cell(words: vec2<u32>) -> Accumulator {
    return decode(words);
}

// What an invocation has on the stage of a place of its own.
fn fetch_one(lane: u32, number: u32, at: Stored) -> vec2<u32> {
    return input_unit(at.low + min(max(number * LANES + lane, at.place) - at.place, at.count - 1u));
}

// All elements of a stretch, of which the invocation's first row is `row`: its share of each turn. They are on their
// way before the first is waited for.
fn load_rows(lane: u32, row: u32, pair: Pair) -> Rows {
    let stride = params.input_axis_stride;
    let base = base_of_rows(lane, pair.place.input);
    let first = row - lane / lanes * FANOUT;
    let a = stored(base, stride, first);
    let b = stored(base, stride, first + TURN_ROWS);
    let c = stored(base, stride, first + 2u * TURN_ROWS);
    let d = stored(base, stride, first + 3u * TURN_ROWS);
    return Rows(
        fetch_one(lane, 0u, a), fetch_one(lane, 1u, a), fetch_one(lane, 2u, a), fetch_one(lane, 3u, a),
        fetch_one(lane, 0u, b), fetch_one(lane, 1u, b), fetch_one(lane, 2u, b), fetch_one(lane, 3u, b),
        fetch_one(lane, 0u, c), fetch_one(lane, 1u, c), fetch_one(lane, 2u, c), fetch_one(lane, 3u, c),
        fetch_one(lane, 0u, d), fetch_one(lane, 1u, d), fetch_one(lane, 2u, d), fetch_one(lane, 3u, d),
    );
}

// The invocation's own rows of the stretch that all have loaded; behind its end some rows, without meaning.
fn own_rows(lane: u32, loaded: Rows) -> Rows {
    var rows: Rows;
    rows = take_turn(lane, 0u, loaded[0], loaded[1], loaded[2], loaded[3], rows);
    rows = take_turn(lane, 1u, loaded[4], loaded[5], loaded[6], loaded[7], rows);
    rows = take_turn(lane, 2u, loaded[8], loaded[9], loaded[10], loaded[11], rows);
    return take_turn(lane, 3u, loaded[12], loaded[13], loaded[14], loaded[15], rows);
}

// A turn on the way to runs: all leave their elements of the turn, those whose turn it is take a run.
fn take_turn(
    lane: u32, turn: u32, a: vec2<u32>, b: vec2<u32>, c: vec2<u32>, d: vec2<u32>, before: Rows,
) -> Rows {
    workgroupBarrier();
    leave(lane, a);
    leave(LANES + lane, b);
    leave(2u * LANES + lane, c);
    leave(3u * LANES + lane, d);
    workgroupBarrier();
    let run = lane / lanes;
    if (run / RUNS_OF_TURN != turn) {
        return before;
    }
    let beside = min(lane % lanes, params.across - 1u);
    let row = run % RUNS_OF_TURN * FANOUT;
    let stride = params.input_axis_stride;
    var mine: Rows;
    mine[0] = bits_left(place_of_row(row + 0u, beside, stride));
    mine[1] = bits_left(place_of_row(row + 1u, beside, stride));
    mine[2] = bits_left(place_of_row(row + 2u, beside, stride));
    mine[3] = bits_left(place_of_row(row + 3u, beside, stride));
    mine[4] = bits_left(place_of_row(row + 4u, beside, stride));
    mine[5] = bits_left(place_of_row(row + 5u, beside, stride));
    mine[6] = bits_left(place_of_row(row + 6u, beside, stride));
    mine[7] = bits_left(place_of_row(row + 7u, beside, stride));
    mine[8] = bits_left(place_of_row(row + 8u, beside, stride));
    mine[9] = bits_left(place_of_row(row + 9u, beside, stride));
    mine[10] = bits_left(place_of_row(row + 10u, beside, stride));
    mine[11] = bits_left(place_of_row(row + 11u, beside, stride));
    mine[12] = bits_left(place_of_row(row + 12u, beside, stride));
    mine[13] = bits_left(place_of_row(row + 13u, beside, stride));
    mine[14] = bits_left(place_of_row(row + 14u, beside, stride));
    mine[15] = bits_left(place_of_row(row + 15u, beside, stride));
    return mine;
}

// Stores the first `count` members of runs, from row number `row` of the window on; all invocations call it.
fn store_rows(lane: u32, row: u32, slice: u32, pair: Pair, count: u32, a: Run, b: Run) {
    let base = base_of_rows(lane, pair.place.output);
    let first = row - lane / lanes * FANOUT;
    for (var turn = 0u; turn < ROWS / TURN_ROWS; turn += 1u) {
        give_turn(lane, turn, base, first + turn * TURN_ROWS, slice, a);
    }
}

// A turn on the way back: those whose turn it is leave their runs, and all write elements of the turn.
fn give_turn(lane: u32, turn: u32, base: u32, first: u32, slice: u32, a: Run) {
    workgroupBarrier();
    let run = lane / lanes;
    if (run / RUNS_OF_TURN == turn && slice < params.count) {
        let beside = lane % lanes;
        let row = run % RUNS_OF_TURN * FANOUT;
        let stride = params.output_axis_stride;
        leave(place_of_row(row + 0u, beside, stride), encode(a[0]));
        leave(place_of_row(row + 1u, beside, stride), encode(a[1]));
        leave(place_of_row(row + 2u, beside, stride), encode(a[2]));
        leave(place_of_row(row + 3u, beside, stride), encode(a[3]));
        leave(place_of_row(row + 4u, beside, stride), encode(a[4]));
        leave(place_of_row(row + 5u, beside, stride), encode(a[5]));
        leave(place_of_row(row + 6u, beside, stride), encode(a[6]));
        leave(place_of_row(row + 7u, beside, stride), encode(a[7]));
        leave(place_of_row(row + 8u, beside, stride), encode(a[8]));
        leave(place_of_row(row + 9u, beside, stride), encode(a[9]));
        leave(place_of_row(row + 10u, beside, stride), encode(a[10]));
        leave(place_of_row(row + 11u, beside, stride), encode(a[11]));
        leave(place_of_row(row + 12u, beside, stride), encode(a[12]));
        leave(place_of_row(row + 13u, beside, stride), encode(a[13]));
        leave(place_of_row(row + 14u, beside, stride), encode(a[14]));
        leave(place_of_row(row + 15u, beside, stride), encode(a[15]));
    }
    workgroupBarrier();
    let to = stored(base, params.output_axis_stride, first);
    let count = select(0u, to.count, first < params.length);
    for (var number = lane; number < count; number += LANES) {
        set_output_unit(to.low + number, bits_left(to.place + number));
    }
}
