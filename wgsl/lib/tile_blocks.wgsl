// Slot <tile>: the canonical order inside a tile by 16 invocations with a block of 256 elements each, in registers. For
// software adapters: one barrier where Hillis-Steele across invocations takes five.

#import "lib/block.wgsl"

const LANES = 16u;
const LANE_ELEMENTS = 256u;

var<private> total_of_tile: Accumulator;
var<workgroup> block_totals: array<Accumulator, 16>;

// Reads and folds the tile of `count` elements that begins at `input`; a barrier must follow.
fn fold_tile(lane: u32, input: u32, count: u32, classes: bool) {
    let first = lane * LANE_ELEMENTS;
    runs[0] = take_run(first + 0u, input, count, classes);
    runs[1] = take_run(first + 16u, input, count, classes);
    runs[2] = take_run(first + 32u, input, count, classes);
    runs[3] = take_run(first + 48u, input, count, classes);
    runs[4] = take_run(first + 64u, input, count, classes);
    runs[5] = take_run(first + 80u, input, count, classes);
    runs[6] = take_run(first + 96u, input, count, classes);
    runs[7] = take_run(first + 112u, input, count, classes);
    runs[8] = take_run(first + 128u, input, count, classes);
    runs[9] = take_run(first + 144u, input, count, classes);
    runs[10] = take_run(first + 160u, input, count, classes);
    runs[11] = take_run(first + 176u, input, count, classes);
    runs[12] = take_run(first + 192u, input, count, classes);
    runs[13] = take_run(first + 208u, input, count, classes);
    runs[14] = take_run(first + 224u, input, count, classes);
    runs[15] = take_run(first + 240u, input, count, classes);
    heads = scan_totals(Run(
        runs[0][15], runs[1][15], runs[2][15], runs[3][15],
        runs[4][15], runs[5][15], runs[6][15], runs[7][15],
        runs[8][15], runs[9][15], runs[10][15], runs[11][15],
        runs[12][15], runs[13][15], runs[14][15], runs[15][15],
    ));
    block_totals[lane] = heads[15];
}

// Turns what fold_tile left into results that go on from `base`, where there is one. Returns the largest magnitude.
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
    total_of_tile = total;
    var q = base;
    if (lane > 0u) {
        q = append(has_base, base, p);
    }
    let present = has_base || lane > 0u;
    runs[0] = results_of_run(present, q, runs[0]);
    runs[1] = results_of_run(true, append(present, q, heads[0]), runs[1]);
    runs[2] = results_of_run(true, append(present, q, heads[1]), runs[2]);
    runs[3] = results_of_run(true, append(present, q, heads[2]), runs[3]);
    runs[4] = results_of_run(true, append(present, q, heads[3]), runs[4]);
    runs[5] = results_of_run(true, append(present, q, heads[4]), runs[5]);
    runs[6] = results_of_run(true, append(present, q, heads[5]), runs[6]);
    runs[7] = results_of_run(true, append(present, q, heads[6]), runs[7]);
    runs[8] = results_of_run(true, append(present, q, heads[7]), runs[8]);
    runs[9] = results_of_run(true, append(present, q, heads[8]), runs[9]);
    runs[10] = results_of_run(true, append(present, q, heads[9]), runs[10]);
    runs[11] = results_of_run(true, append(present, q, heads[10]), runs[11]);
    runs[12] = results_of_run(true, append(present, q, heads[11]), runs[12]);
    runs[13] = results_of_run(true, append(present, q, heads[12]), runs[13]);
    runs[14] = results_of_run(true, append(present, q, heads[13]), runs[14]);
    runs[15] = results_of_run(true, append(present, q, heads[14]), runs[15]);
    let first = lane * LANE_ELEMENTS;
    return largest_of_block(count - min(first, count));
}

// The invocation's last result.
fn end_of_lane() -> Accumulator {
    return runs[15][15];
}

// Writes the results; `before` is the result before the invocation's first.
fn store_tile(lane: u32, output: u32, count: u32, before: Accumulator) {
    let first = lane * LANE_ELEMENTS;
    put_run(first, output, count, before, runs[0]);
    put_run(first + 16u, output, count, runs[0][15], runs[1]);
    put_run(first + 32u, output, count, runs[1][15], runs[2]);
    put_run(first + 48u, output, count, runs[2][15], runs[3]);
    put_run(first + 64u, output, count, runs[3][15], runs[4]);
    put_run(first + 80u, output, count, runs[4][15], runs[5]);
    put_run(first + 96u, output, count, runs[5][15], runs[6]);
    put_run(first + 112u, output, count, runs[6][15], runs[7]);
    put_run(first + 128u, output, count, runs[7][15], runs[8]);
    put_run(first + 144u, output, count, runs[8][15], runs[9]);
    put_run(first + 160u, output, count, runs[9][15], runs[10]);
    put_run(first + 176u, output, count, runs[10][15], runs[11]);
    put_run(first + 192u, output, count, runs[11][15], runs[12]);
    put_run(first + 208u, output, count, runs[12][15], runs[13]);
    put_run(first + 224u, output, count, runs[13][15], runs[14]);
    put_run(first + 240u, output, count, runs[14][15], runs[15]);
}
