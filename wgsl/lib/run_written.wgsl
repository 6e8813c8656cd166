// Slot <run>: the folds of a run, written out: software drivers keep arrays with computed indices in memory, and wgpu's
// guards against endless loops keep compilers from unrolling.

// r(i), the left fold of the run's elements, all checked.
fn fold_run(items: Run) -> Run {
    var r = items;
    r[0] = checked(r[0]);
    r[1] = take(r[0], r[1]);
    r[2] = take(r[1], r[2]);
    r[3] = take(r[2], r[3]);
    r[4] = take(r[3], r[4]);
    r[5] = take(r[4], r[5]);
    r[6] = take(r[5], r[6]);
    r[7] = take(r[6], r[7]);
    r[8] = take(r[7], r[8]);
    r[9] = take(r[8], r[9]);
    r[10] = take(r[9], r[10]);
    r[11] = take(r[10], r[11]);
    r[12] = take(r[11], r[12]);
    r[13] = take(r[12], r[13]);
    r[14] = take(r[13], r[14]);
    r[15] = take(r[14], r[15]);
    return r;
}

// The left fold that exceptional tiles have, of a run whose first member is what it begins with.
fn left_fold_run(items: Run) -> Run {
    var r = items;
    r[1] = fold(r[0], r[1]);
    r[2] = fold_on(r[1], r[2]);
    r[3] = fold_on(r[2], r[3]);
    r[4] = fold_on(r[3], r[4]);
    r[5] = fold_on(r[4], r[5]);
    r[6] = fold_on(r[5], r[6]);
    r[7] = fold_on(r[6], r[7]);
    r[8] = fold_on(r[7], r[8]);
    r[9] = fold_on(r[8], r[9]);
    r[10] = fold_on(r[9], r[10]);
    r[11] = fold_on(r[10], r[11]);
    r[12] = fold_on(r[11], r[12]);
    r[13] = fold_on(r[12], r[13]);
    r[14] = fold_on(r[13], r[14]);
    r[15] = fold_on(r[14], r[15]);
    return r;
}

// h(j), Hillis-Steele over the 16 run totals of a block: stride 1, 2, 4 and 8, all j at once, hence the last first.
fn scan_totals(totals: Run) -> Run {
    var h = totals;
    h[15] = link(h[14], h[15]);
    h[14] = link(h[13], h[14]);
    h[13] = link(h[12], h[13]);
    h[12] = link(h[11], h[12]);
    h[11] = link(h[10], h[11]);
    h[10] = link(h[9], h[10]);
    h[9] = link(h[8], h[9]);
    h[8] = link(h[7], h[8]);
    h[7] = link(h[6], h[7]);
    h[6] = link(h[5], h[6]);
    h[5] = link(h[4], h[5]);
    h[4] = link(h[3], h[4]);
    h[3] = link(h[2], h[3]);
    h[2] = link(h[1], h[2]);
    h[1] = link(h[0], h[1]);
    h[15] = link(h[13], h[15]);
    h[14] = link(h[12], h[14]);
    h[13] = link(h[11], h[13]);
    h[12] = link(h[10], h[12]);
    h[11] = link(h[9], h[11]);
    h[10] = link(h[8], h[10]);
    h[9] = link(h[7], h[9]);
    h[8] = link(h[6], h[8]);
    h[7] = link(h[5], h[7]);
    h[6] = link(h[4], h[6]);
    h[5] = link(h[3], h[5]);
    h[4] = link(h[2], h[4]);
    h[3] = link(h[1], h[3]);
    h[2] = link(h[0], h[2]);
    h[15] = link(h[11], h[15]);
    h[14] = link(h[10], h[14]);
    h[13] = link(h[9], h[13]);
    h[12] = link(h[8], h[12]);
    h[11] = link(h[7], h[11]);
    h[10] = link(h[6], h[10]);
    h[9] = link(h[5], h[9]);
    h[8] = link(h[4], h[8]);
    h[7] = link(h[3], h[7]);
    h[6] = link(h[2], h[6]);
    h[5] = link(h[1], h[5]);
    h[4] = link(h[0], h[4]);
    h[15] = link(h[7], h[15]);
    h[14] = link(h[6], h[14]);
    h[13] = link(h[5], h[13]);
    h[12] = link(h[4], h[12]);
    h[11] = link(h[3], h[11]);
    h[10] = link(h[2], h[10]);
    h[9] = link(h[1], h[9]);
    h[8] = link(h[0], h[8]);
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
