// The 16 rows of an invocation's run in a strip, as bits: two words of each, of which first_cell and second_cell of
// <cells> make elements. Needs lib/order/run.wgsl.

alias Rows = array<vec2<u32>, 16>;

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
