// The 16 rows of an invocation's run in a strip, read ahead, as they lie in memory. Needs <cells> and
// lib/order/run.wgsl.

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
