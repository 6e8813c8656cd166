// The 16 rows of an invocation's run in a strip: what lies in memory, read ahead, and what is written.
// Needs <cells> and lib/run.wgsl.

alias Rows = array<vec2<u32>, 16>;

fn next_row(place: u32, i: u32, last: u32) -> u32 {
    return place + select(0u, params.input_axis_stride, i <= last);
}

// The rows of the window from number `row` on, of the column that begins at `place` and of the one `apart` from it.
// Beyond the end some row is read again.
fn load_rows(row: u32, place: u32, apart: u32) -> Rows {
    let first = min(row, params.length - 1u);
    let last = params.length - 1u - first;
    var rows: Rows;
    var p = place + first * params.input_axis_stride;
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

fn first_run(rows: Rows) -> Run {
    return Run(
        first_cell(rows[0]), first_cell(rows[1]), first_cell(rows[2]), first_cell(rows[3]),
        first_cell(rows[4]), first_cell(rows[5]), first_cell(rows[6]), first_cell(rows[7]),
        first_cell(rows[8]), first_cell(rows[9]), first_cell(rows[10]), first_cell(rows[11]),
        first_cell(rows[12]), first_cell(rows[13]), first_cell(rows[14]), first_cell(rows[15]),
    );
}

fn second_run(rows: Rows) -> Run {
    return Run(
        second_cell(rows[0]), second_cell(rows[1]), second_cell(rows[2]), second_cell(rows[3]),
        second_cell(rows[4]), second_cell(rows[5]), second_cell(rows[6]), second_cell(rows[7]),
        second_cell(rows[8]), second_cell(rows[9]), second_cell(rows[10]), second_cell(rows[11]),
        second_cell(rows[12]), second_cell(rows[13]), second_cell(rows[14]), second_cell(rows[15]),
    );
}

// Stores the first `count` members of the runs that begin at `place` and `apart` from it; the latter if `both`.
fn store_rows(place: u32, apart: u32, count: u32, both: bool, a: Run, b: Run) {
    let stride = params.output_axis_stride;
    if (0u < count) {
        store_row(place + 0u * stride, apart, both, a[0], b[0]);
    }
    if (1u < count) {
        store_row(place + 1u * stride, apart, both, a[1], b[1]);
    }
    if (2u < count) {
        store_row(place + 2u * stride, apart, both, a[2], b[2]);
    }
    if (3u < count) {
        store_row(place + 3u * stride, apart, both, a[3], b[3]);
    }
    if (4u < count) {
        store_row(place + 4u * stride, apart, both, a[4], b[4]);
    }
    if (5u < count) {
        store_row(place + 5u * stride, apart, both, a[5], b[5]);
    }
    if (6u < count) {
        store_row(place + 6u * stride, apart, both, a[6], b[6]);
    }
    if (7u < count) {
        store_row(place + 7u * stride, apart, both, a[7], b[7]);
    }
    if (8u < count) {
        store_row(place + 8u * stride, apart, both, a[8], b[8]);
    }
    if (9u < count) {
        store_row(place + 9u * stride, apart, both, a[9], b[9]);
    }
    if (10u < count) {
        store_row(place + 10u * stride, apart, both, a[10], b[10]);
    }
    if (11u < count) {
        store_row(place + 11u * stride, apart, both, a[11], b[11]);
    }
    if (12u < count) {
        store_row(place + 12u * stride, apart, both, a[12], b[12]);
    }
    if (13u < count) {
        store_row(place + 13u * stride, apart, both, a[13], b[13]);
    }
    if (14u < count) {
        store_row(place + 14u * stride, apart, both, a[14], b[14]);
    }
    if (15u < count) {
        store_row(place + 15u * stride, apart, both, a[15], b[15]);
    }
}

fn store_row(place: u32, apart: u32, both: bool, a: Accumulator, b: Accumulator) {
    store_cells(place, place + apart, both, a, b);
}
