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

// The left fold that exceptional tiles have, of a run whose first member is what it begins with. As `fold` has it, but
// with no choice in the chain of multiplications: r is of the results as they would be, had the last one not become a
// zero, and operands are zeros where the last but one is. (What one element makes of a tiny result is below 4.)
fn left_fold_run(items: Run) -> Run {
    var r = items;
    r[1] = combine(r[0], operand(identity(), items[1]));
    r[2] = combine(r[1], operand(r[0], items[2]));
    r[3] = combine(r[2], operand(r[1], items[3]));
    r[4] = combine(r[3], operand(r[2], items[4]));
    r[5] = combine(r[4], operand(r[3], items[5]));
    r[6] = combine(r[5], operand(r[4], items[6]));
    r[7] = combine(r[6], operand(r[5], items[7]));
    r[8] = combine(r[7], operand(r[6], items[8]));
    r[9] = combine(r[8], operand(r[7], items[9]));
    r[10] = combine(r[9], operand(r[8], items[10]));
    r[11] = combine(r[10], operand(r[9], items[11]));
    r[12] = combine(r[11], operand(r[10], items[12]));
    r[13] = combine(r[12], operand(r[11], items[13]));
    r[14] = combine(r[13], operand(r[12], items[14]));
    r[15] = combine(r[14], operand(r[13], items[15]));
    return Run(
        items[0], settled(r[0], r[1]), settled(r[1], r[2]), settled(r[2], r[3]),
        settled(r[3], r[4]), settled(r[4], r[5]), settled(r[5], r[6]), settled(r[6], r[7]),
        settled(r[7], r[8]), settled(r[8], r[9]), settled(r[9], r[10]), settled(r[10], r[11]),
        settled(r[11], r[12]), settled(r[12], r[13]), settled(r[13], r[14]), settled(r[14], r[15]),
    );
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
