// How tiles for GPUs fold the totals of blocks: written out, without a loop. Needs lib/tiles/fold.wgsl.

fn fold_blocks(lane: u32) -> Folds {
    return fold_first(max(lane / FANOUT, 1u), Run(
        shelves[0][15], shelves[0][31], shelves[0][47], shelves[0][63],
        shelves[0][79], shelves[0][95], shelves[0][111], shelves[0][127],
        shelves[0][143], shelves[0][159], shelves[0][175], shelves[0][191],
        shelves[0][207], shelves[0][223], shelves[0][239], shelves[0][255],
    ));
}
