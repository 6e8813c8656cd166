// Slot <block>: a block in loops, its runs in memory, for elements that are too much code to be written out.

// As in lib/block_written.wgsl.
fn fold_block(first: u32, input: u32, count: u32, classes: bool) {
    for (var j = 0u; j < 16u; j += 1u) {
        let run = take_run(first + j * 16u, input, count, classes);
        runs[j] = run;
        heads[j] = run[15];
    }
    heads = scan_totals(heads);
}

fn results_of_block(present: bool, q: Accumulator) {
    var start = q;
    var goes_on = present;
    for (var j = 0u; j < 16u; j += 1u) {
        runs[j] = results_of_run(goes_on, start, runs[j]);
        start = append(present, q, heads[j]);
        goes_on = true;
    }
}

fn store_block(first: u32, output: u32, count: u32, before: Accumulator) {
    var last = before;
    for (var j = 0u; j < 16u; j += 1u) {
        let run = runs[j];
        put_run(first + j * 16u, output, count, last, run);
        last = run[15];
    }
}

fn largest_of_block(members: u32) -> u32 {
    var largest = 0u;
    for (var j = 0u; j < 16u; j += 1u) {
        largest = max(largest, largest_of_run(runs[j], members - min(j * 16u, members)));
    }
    return largest;
}
