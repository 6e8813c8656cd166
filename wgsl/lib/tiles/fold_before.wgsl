// What a tile of integers goes on from, made of the totals of all tiles before it by a workgroup: of integers the order
// of folds is free. Needs lib/tiles/state.wgsl, and of the kernel `ends`, an accumulator for each invocation.

var<workgroup> folded: Accumulator;

// All invocations call it.
fn fold_before(lane: u32, slice: u32, tile: u32, start: Carry) -> Accumulator {
    let share = (tile + 255u) / 256u;
    let first = lane * share;
    let end = min(first + share, tile);
    if (first < end) {
        var fold = tile_accumulator(slice, first, TILE_TOTAL);
        for (var t = first + 1u; t < end; t += 1u) {
            fold = combine(fold, tile_accumulator(slice, t, TILE_TOTAL));
        }
        ends[lane] = fold;
    }
    workgroupBarrier();
    if (lane == 0u) {
        folded = base_of(start);
        var present = has_base(start);
        for (var i = 0u; i * share < tile; i += 1u) {
            folded = append(present, folded, ends[i]);
            present = true;
        }
    }
    workgroupBarrier();
    return folded;
}
