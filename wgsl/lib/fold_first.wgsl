// The left folds of the first totals of a tile's blocks, and of all. Needs lib/run.wgsl.

struct Folds {
    first: Accumulator,
    all: Accumulator,
}

// Of the first `count`, at least one. What it was on the way others check.
fn fold_first(count: u32, totals: Run) -> Folds {
    var all = totals[0];
    var first = all;
    all = combine(all, totals[1]);
    first = select(first, all, count > 1u);
    all = combine(all, totals[2]);
    first = select(first, all, count > 2u);
    all = combine(all, totals[3]);
    first = select(first, all, count > 3u);
    all = combine(all, totals[4]);
    first = select(first, all, count > 4u);
    all = combine(all, totals[5]);
    first = select(first, all, count > 5u);
    all = combine(all, totals[6]);
    first = select(first, all, count > 6u);
    all = combine(all, totals[7]);
    first = select(first, all, count > 7u);
    all = combine(all, totals[8]);
    first = select(first, all, count > 8u);
    all = combine(all, totals[9]);
    first = select(first, all, count > 9u);
    all = combine(all, totals[10]);
    first = select(first, all, count > 10u);
    all = combine(all, totals[11]);
    first = select(first, all, count > 11u);
    all = combine(all, totals[12]);
    first = select(first, all, count > 12u);
    all = combine(all, totals[13]);
    first = select(first, all, count > 13u);
    all = combine(all, totals[14]);
    first = select(first, all, count > 14u);
    all = combine(all, totals[15]);
    first = select(first, all, count > 15u);
    return Folds(checked(first), checked(all));
}
