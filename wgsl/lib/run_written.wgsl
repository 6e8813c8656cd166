// Slot <run>: the folds of a run, written out: software drivers keep arrays with computed indices in memory, and wgpu's
// guards against endless loops keep compilers from unrolling.

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
