// Slot <tile>: the canonical order inside a tile by 16 invocations with a block of 256 elements each. For lavapipe and
// SwiftShader: one barrier where Hillis-Steele across invocations takes five.

#import "lib/block.wgsl"
#import "lib/fold_first.wgsl"

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
    let totals = fold_first(max(lane, 1u), Run(
        block_totals[0], block_totals[1], block_totals[2], block_totals[3],
        block_totals[4], block_totals[5], block_totals[6], block_totals[7],
        block_totals[8], block_totals[9], block_totals[10], block_totals[11],
        block_totals[12], block_totals[13], block_totals[14], block_totals[15],
    ));
    total_of_tile = totals.all;
    var q = base;
    if (lane > 0u) {
        q = append(has_base, base, totals.first);
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
