// Rows that go through workgroup memory, a turn at a time: in the order of memory on one side, in runs on the other.
// Needs lib/strips/staged.wgsl and lib/strips/stretch.wgsl, and of <cells> fetch_share and leave_share, bits_of_row and
// leave_row, and write_turn.

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
    var rows: Rows; // no Rows(...): naga would write that twice for Direct3D where a Run has the same type
    rows[0] = fetch_share(lane, 0u, a);
    rows[1] = fetch_share(lane, 1u, a);
    rows[2] = fetch_share(lane, 2u, a);
    rows[3] = fetch_share(lane, 3u, a);
    rows[4] = fetch_share(lane, 0u, b);
    rows[5] = fetch_share(lane, 1u, b);
    rows[6] = fetch_share(lane, 2u, b);
    rows[7] = fetch_share(lane, 3u, b);
    rows[8] = fetch_share(lane, 0u, c);
    rows[9] = fetch_share(lane, 1u, c);
    rows[10] = fetch_share(lane, 2u, c);
    rows[11] = fetch_share(lane, 3u, c);
    rows[12] = fetch_share(lane, 0u, d);
    rows[13] = fetch_share(lane, 1u, d);
    rows[14] = fetch_share(lane, 2u, d);
    rows[15] = fetch_share(lane, 3u, d);
    return rows;
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
    leave_share(lane, 0u, a);
    leave_share(lane, 1u, b);
    leave_share(lane, 2u, c);
    leave_share(lane, 3u, d);
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

// Stores the first `count` members of runs, from row number `row` of the window on; all invocations call it.
fn store_rows(lane: u32, row: u32, slice: u32, pair: Pair, count: u32, a: Run, b: Run) {
    let base = base_of_rows(lane, pair.place.output);
    let first = row - lane / lanes * FANOUT;
    for (var turn = 0u; turn < ROWS / TURN_ROWS; turn += 1u) {
        give_turn(lane, turn, slice, pair, a, b);
        let row_of_turn = first + turn * TURN_ROWS;
        if (row_of_turn < params.length) {
            write_turn(lane, stored(base, params.output_axis_stride, row_of_turn));
        }
    }
}

// A turn on the way back: those whose turn it is leave their runs.
fn give_turn(lane: u32, turn: u32, slice: u32, pair: Pair, a: Run, b: Run) {
    workgroupBarrier();
    let run = lane / lanes;
    if (run / RUNS_OF_TURN == turn && slice < params.count) {
        let beside = lane % lanes;
        let row = run % RUNS_OF_TURN * FANOUT;
        leave_row(row + 0u, beside, pair.has_other, a[0], b[0]);
        leave_row(row + 1u, beside, pair.has_other, a[1], b[1]);
        leave_row(row + 2u, beside, pair.has_other, a[2], b[2]);
        leave_row(row + 3u, beside, pair.has_other, a[3], b[3]);
        leave_row(row + 4u, beside, pair.has_other, a[4], b[4]);
        leave_row(row + 5u, beside, pair.has_other, a[5], b[5]);
        leave_row(row + 6u, beside, pair.has_other, a[6], b[6]);
        leave_row(row + 7u, beside, pair.has_other, a[7], b[7]);
        leave_row(row + 8u, beside, pair.has_other, a[8], b[8]);
        leave_row(row + 9u, beside, pair.has_other, a[9], b[9]);
        leave_row(row + 10u, beside, pair.has_other, a[10], b[10]);
        leave_row(row + 11u, beside, pair.has_other, a[11], b[11]);
        leave_row(row + 12u, beside, pair.has_other, a[12], b[12]);
        leave_row(row + 13u, beside, pair.has_other, a[13], b[13]);
        leave_row(row + 14u, beside, pair.has_other, a[14], b[14]);
        leave_row(row + 15u, beside, pair.has_other, a[15], b[15]);
    }
    workgroupBarrier();
}
