// The 16 rows of an invocation's run in a strip, read ahead, as they lie in memory. Needs <cells> and
// lib/strips/stretch.wgsl.

#import "lib/strips/runs.wgsl"

// The cell's first slice, or one that is there.
fn slice_to_read(strip: u32, first: u32) -> u32 {
    return min(first, params.count - slices_of_cell);
}

fn next_row(place: u32, i: u32, last: u32) -> u32 {
    return place + select(0u, params.input_axis_stride, i <= last);
}

// The rows of the window from number `row` on, of both columns. Beyond the end some row is read again.
fn load_rows(lane: u32, row: u32, pair: Pair) -> Rows {
    let first = min(row, params.length - 1u);
    let last = params.length - 1u - first;
    var rows: Rows;
    let apart = pair.apart.input;
    var p = pair.place.input + first * params.input_axis_stride;
    rows[0] = load_cells(p, p + apart);
    p = next_row(p, 1u, last);
    rows[1] = load_cells(p, p + apart);
    p = next_row(p, 2u, last);
    rows[2] = load_cells(p, p + apart);
    p = next_row(p, 3u, last);
    rows[3] = load_cells(p, p + apart);
    p = next_row(p, 4u, last);
    rows[4] = load_cells(p, p + apart);
    p = next_row(p, 5u, last);
    rows[5] = load_cells(p, p + apart);
    p = next_row(p, 6u, last);
    rows[6] = load_cells(p, p + apart);
    p = next_row(p, 7u, last);
    rows[7] = load_cells(p, p + apart);
    p = next_row(p, 8u, last);
    rows[8] = load_cells(p, p + apart);
    p = next_row(p, 9u, last);
    rows[9] = load_cells(p, p + apart);
    p = next_row(p, 10u, last);
    rows[10] = load_cells(p, p + apart);
    p = next_row(p, 11u, last);
    rows[11] = load_cells(p, p + apart);
    p = next_row(p, 12u, last);
    rows[12] = load_cells(p, p + apart);
    p = next_row(p, 13u, last);
    rows[13] = load_cells(p, p + apart);
    p = next_row(p, 14u, last);
    rows[14] = load_cells(p, p + apart);
    p = next_row(p, 15u, last);
    rows[15] = load_cells(p, p + apart);
    return rows;
}

// The invocation's own rows of those that it has loaded.
fn own_rows(lane: u32, loaded: Rows) -> Rows {
    return loaded;
}
