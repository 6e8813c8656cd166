// Slot <block>: a block written out, so that its runs stay in registers: on lavapipe 32-bit elements in quads take an
// eighth to a quarter less time than in loops, and a good two times as long to compile.

// Reads and folds the block of this invocation, `first` elements into the tile.
fn fold_block(first: u32, input: u32, count: u32, classes: bool) {
    runs[0] = take_run(first + 0u, input, count, classes);
    runs[1] = take_run(first + 16u, input, count, classes);
    runs[2] = take_run(first + 32u, input, count, classes);
    runs[3] = take_run(first + 48u, input, count, classes);
    runs[4] = take_run(first + 64u, input, count, classes);
    runs[5] = take_run(first + 80u, input, count, classes);
    runs[6] = take_run(first + 96u, input, count, classes);
    runs[7] = take_run(first + 112u, input, count, classes);
    runs[8] = take_run(first + 128u, input, count, classes);
    runs[9] = take_run(first + 144u, input, count, classes);
    runs[10] = take_run(first + 160u, input, count, classes);
    runs[11] = take_run(first + 176u, input, count, classes);
    runs[12] = take_run(first + 192u, input, count, classes);
    runs[13] = take_run(first + 208u, input, count, classes);
    runs[14] = take_run(first + 224u, input, count, classes);
    runs[15] = take_run(first + 240u, input, count, classes);
    heads = scan_totals(Run(
        runs[0][15], runs[1][15], runs[2][15], runs[3][15],
        runs[4][15], runs[5][15], runs[6][15], runs[7][15],
        runs[8][15], runs[9][15], runs[10][15], runs[11][15],
        runs[12][15], runs[13][15], runs[14][15], runs[15][15],
    ));
}

// Turns runs into results that go on from q, where `present`.
fn results_of_block(present: bool, q: Accumulator) {
    runs[0] = results_of_run(present, q, runs[0]);
    runs[1] = results_of_run(true, append(present, q, heads[0]), runs[1]);
    runs[2] = results_of_run(true, append(present, q, heads[1]), runs[2]);
    runs[3] = results_of_run(true, append(present, q, heads[2]), runs[3]);
    runs[4] = results_of_run(true, append(present, q, heads[3]), runs[4]);
    runs[5] = results_of_run(true, append(present, q, heads[4]), runs[5]);
    runs[6] = results_of_run(true, append(present, q, heads[5]), runs[6]);
    runs[7] = results_of_run(true, append(present, q, heads[6]), runs[7]);
    runs[8] = results_of_run(true, append(present, q, heads[7]), runs[8]);
    runs[9] = results_of_run(true, append(present, q, heads[8]), runs[9]);
    runs[10] = results_of_run(true, append(present, q, heads[9]), runs[10]);
    runs[11] = results_of_run(true, append(present, q, heads[10]), runs[11]);
    runs[12] = results_of_run(true, append(present, q, heads[11]), runs[12]);
    runs[13] = results_of_run(true, append(present, q, heads[12]), runs[13]);
    runs[14] = results_of_run(true, append(present, q, heads[13]), runs[14]);
    runs[15] = results_of_run(true, append(present, q, heads[14]), runs[15]);
}

fn store_block(first: u32, output: u32, count: u32, before: Accumulator) {
    put_run(first, output, count, before, runs[0]);
    put_run(first + 16u, output, count, runs[0][15], runs[1]);
    put_run(first + 32u, output, count, runs[1][15], runs[2]);
    put_run(first + 48u, output, count, runs[2][15], runs[3]);
    put_run(first + 64u, output, count, runs[3][15], runs[4]);
    put_run(first + 80u, output, count, runs[4][15], runs[5]);
    put_run(first + 96u, output, count, runs[5][15], runs[6]);
    put_run(first + 112u, output, count, runs[6][15], runs[7]);
    put_run(first + 128u, output, count, runs[7][15], runs[8]);
    put_run(first + 144u, output, count, runs[8][15], runs[9]);
    put_run(first + 160u, output, count, runs[9][15], runs[10]);
    put_run(first + 176u, output, count, runs[10][15], runs[11]);
    put_run(first + 192u, output, count, runs[11][15], runs[12]);
    put_run(first + 208u, output, count, runs[12][15], runs[13]);
    put_run(first + 224u, output, count, runs[13][15], runs[14]);
    put_run(first + 240u, output, count, runs[14][15], runs[15]);
}

// The largest magnitude of the first `members` results.
fn largest_of_block(members: u32) -> u32 {
    var largest = largest_of_run(runs[0], members);
    largest = max(largest, largest_of_run(runs[1], members - min(16u, members)));
    largest = max(largest, largest_of_run(runs[2], members - min(32u, members)));
    largest = max(largest, largest_of_run(runs[3], members - min(48u, members)));
    largest = max(largest, largest_of_run(runs[4], members - min(64u, members)));
    largest = max(largest, largest_of_run(runs[5], members - min(80u, members)));
    largest = max(largest, largest_of_run(runs[6], members - min(96u, members)));
    largest = max(largest, largest_of_run(runs[7], members - min(112u, members)));
    largest = max(largest, largest_of_run(runs[8], members - min(128u, members)));
    largest = max(largest, largest_of_run(runs[9], members - min(144u, members)));
    largest = max(largest, largest_of_run(runs[10], members - min(160u, members)));
    largest = max(largest, largest_of_run(runs[11], members - min(176u, members)));
    largest = max(largest, largest_of_run(runs[12], members - min(192u, members)));
    largest = max(largest, largest_of_run(runs[13], members - min(208u, members)));
    largest = max(largest, largest_of_run(runs[14], members - min(224u, members)));
    largest = max(largest, largest_of_run(runs[15], members - min(240u, members)));
    return largest;
}
