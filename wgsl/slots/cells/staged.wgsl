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

// What an invocation has on the stage of two places of its own, 256 apart.
fn fetch_two(lane: u32, number: u32, at: Stored) -> vec2<u32> {
    let near = number * LANES + lane;
    let last = at.count - 1u;
    let first = min(max(near, at.place) - at.place, last);
    let second = min(max(near + LANES, at.place) - at.place, last);
    return vec2<u32>(load_bits(at.low + first).x, load_bits(at.low + second).x);
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
        fetch_two(lane, 0u, a), fetch_two(lane, 2u, a), fetch_two(lane, 4u, a), fetch_two(lane, 6u, a),
        fetch_two(lane, 0u, b), fetch_two(lane, 2u, b), fetch_two(lane, 4u, b), fetch_two(lane, 6u, b),
        fetch_two(lane, 0u, c), fetch_two(lane, 2u, c), fetch_two(lane, 4u, c), fetch_two(lane, 6u, c),
        fetch_two(lane, 0u, d), fetch_two(lane, 2u, d), fetch_two(lane, 4u, d), fetch_two(lane, 6u, d),
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

// A turn on the way to runs: all leave their elements of the turn, those whose turn it is take a run of each column.
fn take_turn(
    lane: u32, turn: u32, a: vec2<u32>, b: vec2<u32>, c: vec2<u32>, d: vec2<u32>, before: Rows,
) -> Rows {
    workgroupBarrier();
    leave_two(lane, 0u, a);
    leave_two(lane, 2u, b);
    leave_two(lane, 4u, c);
    leave_two(lane, 6u, d);
    workgroupBarrier();
    let run = lane / lanes;
    if (run / RUNS_OF_TURN != turn) {
        return before;
    }
    let beside = lane % lanes;
    let row = run % RUNS_OF_TURN * FANOUT;
    var mine: Rows;
    mine[0] = bits_of_row(row + 0u, beside);
    mine[1] = bits_of_row(row + 1u, beside);
    mine[2] = bits_of_row(row + 2u, beside);
    mine[3] = bits_of_row(row + 3u, beside);
    mine[4] = bits_of_row(row + 4u, beside);
    mine[5] = bits_of_row(row + 5u, beside);
    mine[6] = bits_of_row(row + 6u, beside);
    mine[7] = bits_of_row(row + 7u, beside);
    mine[8] = bits_of_row(row + 8u, beside);
    mine[9] = bits_of_row(row + 9u, beside);
    mine[10] = bits_of_row(row + 10u, beside);
    mine[11] = bits_of_row(row + 11u, beside);
    mine[12] = bits_of_row(row + 12u, beside);
    mine[13] = bits_of_row(row + 13u, beside);
    mine[14] = bits_of_row(row + 14u, beside);
    mine[15] = bits_of_row(row + 15u, beside);
    return mine;
}

fn leave_two(lane: u32, number: u32, bits: vec2<u32>) {
    leave(number * LANES + lane, vec2<u32>(bits.x, 0u));
    leave((number + 1u) * LANES + lane, vec2<u32>(bits.y, 0u));
}

// Of an invocation's columns.
fn bits_of_row(row: u32, beside: u32) -> vec2<u32> {
    let stride = params.input_axis_stride;
    let other = min(beside + lanes, params.across - 1u);
    return vec2<u32>(
        bits_left(place_of_row(row, beside, stride)).x, bits_left(place_of_row(row, other, stride)).x,
    );
}

// Stores the first `count` members of runs, from row number `row` of the window on; all invocations call it.
fn store_rows(lane: u32, row: u32, slice: u32, pair: Pair, count: u32, a: Run, b: Run) {
    let base = base_of_rows(lane, pair.place.output);
    let first = row - lane / lanes * FANOUT;
    for (var turn = 0u; turn < ROWS / TURN_ROWS; turn += 1u) {
        give_turn(lane, turn, base, first + turn * TURN_ROWS, pair, a, b);
    }
}

// A turn on the way back: those whose turn it is leave their runs, and all write words of the turn.
fn give_turn(lane: u32, turn: u32, base: u32, first: u32, pair: Pair, a: Run, b: Run) {
    workgroupBarrier();
    let run = lane / lanes;
    if (run / RUNS_OF_TURN == turn) {
        let beside = lane % lanes;
        let row = run % RUNS_OF_TURN * FANOUT;
        leave_row(row + 0u, beside, pair, a[0], b[0]);
        leave_row(row + 1u, beside, pair, a[1], b[1]);
        leave_row(row + 2u, beside, pair, a[2], b[2]);
        leave_row(row + 3u, beside, pair, a[3], b[3]);
        leave_row(row + 4u, beside, pair, a[4], b[4]);
        leave_row(row + 5u, beside, pair, a[5], b[5]);
        leave_row(row + 6u, beside, pair, a[6], b[6]);
        leave_row(row + 7u, beside, pair, a[7], b[7]);
        leave_row(row + 8u, beside, pair, a[8], b[8]);
        leave_row(row + 9u, beside, pair, a[9], b[9]);
        leave_row(row + 10u, beside, pair, a[10], b[10]);
        leave_row(row + 11u, beside, pair, a[11], b[11]);
        leave_row(row + 12u, beside, pair, a[12], b[12]);
        leave_row(row + 13u, beside, pair, a[13], b[13]);
        leave_row(row + 14u, beside, pair, a[14], b[14]);
        leave_row(row + 15u, beside, pair, a[15], b[15]);
    }
    workgroupBarrier();
    let to = stored(base, params.output_axis_stride, first);
    store_words(lane, to.low, select(0u, to.count, first < params.length), to.place, 1u);
}

fn leave_row(row: u32, beside: u32, pair: Pair, a: Accumulator, b: Accumulator) {
    let stride = params.output_axis_stride;
    leave(place_of_row(row, beside, stride), encode(a));
    if (pair.has_other) {
        leave(place_of_row(row, beside + lanes, stride), encode(b));
    }
}
