// How tiles for GPUs fold the totals of blocks: written out, without a loop. Needs lib/tiles/fold.wgsl.

// Of the first `count`, one to 15 of them. What it was on the way others check.
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
    return Folds(checked(first), checked(all));
}

fn fold_blocks(lane: u32) -> Folds {
    return fold_first(max(lane / FANOUT, 1u), Run(
        shelves[0][15], shelves[0][31], shelves[0][47], shelves[0][63],
        shelves[0][79], shelves[0][95], shelves[0][111], shelves[0][127],
        shelves[0][143], shelves[0][159], shelves[0][175], shelves[0][191],
        shelves[0][207], shelves[0][223], shelves[0][239], shelves[0][255],
    ));
}
