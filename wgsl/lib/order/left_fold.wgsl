// Writes the results of an exceptional tile, by one invocation: a left fold. Needs <run_access>.

// The `count` elements go on from `before` if `present`. Returns the last result.
fn write_left_fold(present: bool, before: Accumulator, input: u32, output: u32, count: u32) -> Accumulator {
    var last = before;
    for (var i = 0u; i < count; i += FANOUT) {
        let members = min(count - i, FANOUT);
        var items = load_run(input + i * params.input_axis_stride, params.input_axis_stride, members);
        if (present || i > 0u) {
            items[0] = fold(last, items[0]);
        }
        let results = left_fold_run(items);
        var run = results;
        if (params.exclusive == 1u) {
            run = shifted_run(last, results);
        }
        store_run(output + i * params.output_axis_stride, params.output_axis_stride, members, run);
        last = results[15];
    }
    return last;
}
