// Slot <tile>: the canonical order inside a tile by 16 invocations with a block of 256 elements each. For lavapipe and
// SwiftShader: one barrier where Hillis-Steele across invocations takes five.

#import "lib/block.wgsl"

const LANES = 16u;
const LANE_ELEMENTS = 256u;

var<private> total_of_tile: Accumulator;
var<workgroup> block_totals: array<Accumulator, 16>;

// Reads and folds the tile of `count` elements that begins at `input`; a barrier must follow.
fn fold_tile(lane: u32, input: u32, count: u32, classes: bool) {
    let first = lane * LANE_ELEMENTS;
    fold_block(first, input, count, classes);
    block_totals[lane] = heads[15];
}

// Turns what fold_tile left into results that go on from `base`, where there is one. Returns the largest excess.
fn finish_tile(lane: u32, has_base: bool, base: Accumulator, count: u32) -> u32 {
    // The left fold of the block totals, and what it was before this invocation's block.
    var total = block_totals[0];
    var p = total;
    total = combine(total, block_totals[1]);
    p = select(p, total, lane > 1u);
    total = combine(total, block_totals[2]);
    p = select(p, total, lane > 2u);
    total = combine(total, block_totals[3]);
    p = select(p, total, lane > 3u);
    total = combine(total, block_totals[4]);
    p = select(p, total, lane > 4u);
    total = combine(total, block_totals[5]);
    p = select(p, total, lane > 5u);
    total = combine(total, block_totals[6]);
    p = select(p, total, lane > 6u);
    total = combine(total, block_totals[7]);
    p = select(p, total, lane > 7u);
    total = combine(total, block_totals[8]);
    p = select(p, total, lane > 8u);
    total = combine(total, block_totals[9]);
    p = select(p, total, lane > 9u);
    total = combine(total, block_totals[10]);
    p = select(p, total, lane > 10u);
    total = combine(total, block_totals[11]);
    p = select(p, total, lane > 11u);
    total = combine(total, block_totals[12]);
    p = select(p, total, lane > 12u);
    total = combine(total, block_totals[13]);
    p = select(p, total, lane > 13u);
    total = combine(total, block_totals[14]);
    p = select(p, total, lane > 14u);
    total = combine(total, block_totals[15]);
    total_of_tile = checked(total);
    var q = base;
    if (lane > 0u) {
        q = append(has_base, base, checked(p));
    }
    let present = has_base || lane > 0u;
    return results_of_block(present, q, count - min(lane * LANE_ELEMENTS, count));
}

// The invocation's last result.
fn end_of_lane() -> Accumulator {
    return runs[15][15];
}

// Writes the results; `before` is the result before the invocation's first.
fn store_tile(lane: u32, output: u32, count: u32, before: Accumulator) {
    let first = lane * LANE_ELEMENTS;
    store_block(first, output, count, before);
}
