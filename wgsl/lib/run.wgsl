// A run of 16 elements in registers. Written out, because software drivers keep arrays with computed indices in memory,
// and wgpu's guards against endless loops keep compilers from unrolling.

alias Run = array<Accumulator, 16>;

// r(i), the left fold of the run's elements.
fn fold_run(items: Run) -> Run {
    var r = items;
    r[1] = combine(r[0], r[1]);
    r[2] = combine(r[1], r[2]);
    r[3] = combine(r[2], r[3]);
    r[4] = combine(r[3], r[4]);
    r[5] = combine(r[4], r[5]);
    r[6] = combine(r[5], r[6]);
    r[7] = combine(r[6], r[7]);
    r[8] = combine(r[7], r[8]);
    r[9] = combine(r[8], r[9]);
    r[10] = combine(r[9], r[10]);
    r[11] = combine(r[10], r[11]);
    r[12] = combine(r[11], r[12]);
    r[13] = combine(r[12], r[13]);
    r[14] = combine(r[13], r[14]);
    r[15] = combine(r[14], r[15]);
    return r;
}

// h(j), Hillis-Steele over the 16 run totals of a block: stride 1, 2, 4 and 8, all j at once, hence the last first.
fn scan_totals(totals: Run) -> Run {
    var h = totals;
    h[15] = combine(h[14], h[15]);
    h[14] = combine(h[13], h[14]);
    h[13] = combine(h[12], h[13]);
    h[12] = combine(h[11], h[12]);
    h[11] = combine(h[10], h[11]);
    h[10] = combine(h[9], h[10]);
    h[9] = combine(h[8], h[9]);
    h[8] = combine(h[7], h[8]);
    h[7] = combine(h[6], h[7]);
    h[6] = combine(h[5], h[6]);
    h[5] = combine(h[4], h[5]);
    h[4] = combine(h[3], h[4]);
    h[3] = combine(h[2], h[3]);
    h[2] = combine(h[1], h[2]);
    h[1] = combine(h[0], h[1]);
    h[15] = combine(h[13], h[15]);
    h[14] = combine(h[12], h[14]);
    h[13] = combine(h[11], h[13]);
    h[12] = combine(h[10], h[12]);
    h[11] = combine(h[9], h[11]);
    h[10] = combine(h[8], h[10]);
    h[9] = combine(h[7], h[9]);
    h[8] = combine(h[6], h[8]);
    h[7] = combine(h[5], h[7]);
    h[6] = combine(h[4], h[6]);
    h[5] = combine(h[3], h[5]);
    h[4] = combine(h[2], h[4]);
    h[3] = combine(h[1], h[3]);
    h[2] = combine(h[0], h[2]);
    h[15] = combine(h[11], h[15]);
    h[14] = combine(h[10], h[14]);
    h[13] = combine(h[9], h[13]);
    h[12] = combine(h[8], h[12]);
    h[11] = combine(h[7], h[11]);
    h[10] = combine(h[6], h[10]);
    h[9] = combine(h[5], h[9]);
    h[8] = combine(h[4], h[8]);
    h[7] = combine(h[3], h[7]);
    h[6] = combine(h[2], h[6]);
    h[5] = combine(h[1], h[5]);
    h[4] = combine(h[0], h[4]);
    h[15] = combine(h[7], h[15]);
    h[14] = combine(h[6], h[14]);
    h[13] = combine(h[5], h[13]);
    h[12] = combine(h[4], h[12]);
    h[11] = combine(h[3], h[11]);
    h[10] = combine(h[2], h[10]);
    h[9] = combine(h[1], h[9]);
    h[8] = combine(h[0], h[8]);
    return h;
}

// What the run's results are: q `combine` r(i), or r(i) alone where there is no q.
fn results_of_run(present: bool, q: Accumulator, r: Run) -> Run {
    var results = r;
    if (present) {
        results[0] = combine(q, r[0]);
        results[1] = combine(q, r[1]);
        results[2] = combine(q, r[2]);
        results[3] = combine(q, r[3]);
        results[4] = combine(q, r[4]);
        results[5] = combine(q, r[5]);
        results[6] = combine(q, r[6]);
        results[7] = combine(q, r[7]);
        results[8] = combine(q, r[8]);
        results[9] = combine(q, r[9]);
        results[10] = combine(q, r[10]);
        results[11] = combine(q, r[11]);
        results[12] = combine(q, r[12]);
        results[13] = combine(q, r[13]);
        results[14] = combine(q, r[14]);
        results[15] = combine(q, r[15]);
    }
    return results;
}

// The largest magnitude of the first `count` members.
fn largest_of_run(run: Run, count: u32) -> u32 {
    var largest = 0u;
    largest = max(largest, select(0u, magnitude(run[0]), 0u < count));
    largest = max(largest, select(0u, magnitude(run[1]), 1u < count));
    largest = max(largest, select(0u, magnitude(run[2]), 2u < count));
    largest = max(largest, select(0u, magnitude(run[3]), 3u < count));
    largest = max(largest, select(0u, magnitude(run[4]), 4u < count));
    largest = max(largest, select(0u, magnitude(run[5]), 5u < count));
    largest = max(largest, select(0u, magnitude(run[6]), 6u < count));
    largest = max(largest, select(0u, magnitude(run[7]), 7u < count));
    largest = max(largest, select(0u, magnitude(run[8]), 8u < count));
    largest = max(largest, select(0u, magnitude(run[9]), 9u < count));
    largest = max(largest, select(0u, magnitude(run[10]), 10u < count));
    largest = max(largest, select(0u, magnitude(run[11]), 11u < count));
    largest = max(largest, select(0u, magnitude(run[12]), 12u < count));
    largest = max(largest, select(0u, magnitude(run[13]), 13u < count));
    largest = max(largest, select(0u, magnitude(run[14]), 14u < count));
    largest = max(largest, select(0u, magnitude(run[15]), 15u < count));
    return largest;
}

// The run one element later, `before` first.
fn shifted_run(before: Accumulator, run: Run) -> Run {
    return Run(
        before, run[0], run[1], run[2], run[3], run[4], run[5], run[6],
        run[7], run[8], run[9], run[10], run[11], run[12], run[13], run[14],
    );
}

// Classes instead of elements, where the fold before them is absorbing.
fn classes_of_run(run: Run) -> Run {
    return Run(
        class_of(run[0]), class_of(run[1]), class_of(run[2]), class_of(run[3]),
        class_of(run[4]), class_of(run[5]), class_of(run[6]), class_of(run[7]),
        class_of(run[8]), class_of(run[9]), class_of(run[10]), class_of(run[11]),
        class_of(run[12]), class_of(run[13]), class_of(run[14]), class_of(run[15]),
    );
}
