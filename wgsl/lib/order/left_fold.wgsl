// Writes the results of an exceptional tile, by one invocation: a left fold. Needs <run_access>.

struct LeftFold {
    last: Accumulator,    // the last result
    count: u32,           // of elements
}

// The `count` elements go on from `before` if `present`; if `stops`, only up to the end of the run behind which only
// classes count.
fn left_fold_up_to(
    stops: bool, present: bool, before: Accumulator, input: u32, output: u32, count: u32,
) -> LeftFold {
    var last = before;
    var i = 0u;
    for (; i < count && !(stops && i > 0u && is_absorbing(last)); i += FANOUT) {
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
    return LeftFold(last, min(i, count));
}

// All `count` elements. Returns the last result.
fn write_left_fold(present: bool, before: Accumulator, input: u32, output: u32, count: u32) -> Accumulator {
    return left_fold_up_to(false, present, before, input, output, count).last;
}
