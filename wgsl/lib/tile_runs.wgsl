// Slot <tile>: the canonical order inside a tile by 256 invocations with a run of 16 elements each.

#import "lib/run.wgsl"
#import "lib/run_reach.wgsl"

const LANES = 256u;
const LANE_ELEMENTS = 16u;

// r(i) of the invocation's run; later its results.
var<private> results: Run;
// The elements themselves.
var<private> taken: Run;
// Of a product: how far the run reaches, and later its results.
var<private> reached: Reach;
var<private> extremes: Extent;
var<private> total_of_tile: Accumulator;
var<workgroup> shelves: array<array<Accumulator, 256>, 2>;

// Reads and folds the tile of `count` elements that begins at `input`, and leaves h of every run on shelf 0; a barrier
// must follow.
fn fold_tile(lane: u32, input: u32, count: u32, classes: bool) {
    // Beyond the end of the slice some element is read again, and its results are without meaning.
    let first = min(lane * LANE_ELEMENTS, count - 1u);
    var items = load_run(input + first * params.input_axis_stride, params.input_axis_stride, min(count - first, 16u));
    if (EXCEPTIONS && classes) {
        items = classes_of_run(items);
    }
    taken = items;
    if (product && EXCEPTIONS) {
        items = padded_run(items, count - first);
    }
    results = fold_run(items);
    reached = reach_of_run(items, results);
    // Hillis-Steele over the run totals of each block.
    var h = results[15];
    var shelf = 0u;
    shelves[0][lane] = h;
    for (var stride = 1u; stride < FANOUT; stride <<= 1u) {
        workgroupBarrier();
        if ((lane % FANOUT) >= stride) {
            h = link(shelves[shelf][lane - stride], h);
        }
        shelf = 1u - shelf;
        shelves[shelf][lane] = h;
    }
}

// p: the left fold of the totals of the first `blocks` blocks (at least one). Others check what it was on the way.
fn fold_blocks(blocks: u32) -> Accumulator {
    var p = shelves[0][FANOUT - 1u];
    for (var block = 1u; block < blocks; block += 1u) {
        p = combine(p, shelves[0][block * FANOUT + FANOUT - 1u]);
    }
    return checked(p);
}

// Turns what fold_tile left into results that go on from `base`, where there is one. Returns the largest excess.
fn finish_tile(lane: u32, has_base: bool, base: Accumulator, count: u32) -> u32 {
    let block = lane / FANOUT;
    var q = base;
    var present = has_base;
    if (block > 0u) {
        q = append(present, q, fold_blocks(block));
        present = true;
    }
    if (lane % FANOUT > 0u) {
        q = append(present, q, shelves[0][lane - 1u]);
        present = true;
    }
    if (lane == 0u) {
        total_of_tile = fold_blocks(FANOUT);
    }
    let r = results[15];
    results = results_of_run(present, q, results);
    let members = count - min(lane * LANE_ELEMENTS, count);
    extremes = extent(reached, r, present, q);
    if (product) {
        return select(0u, excess_of_extent(extremes), members > 0u);
    }
    return excess_of_run(results, members);
}

// The invocation's last result.
fn end_of_lane() -> Accumulator {
    return results[15];
}

// Writes the results; `before` is the result before the invocation's first.
fn store_tile(lane: u32, output: u32, count: u32, before: Accumulator) {
    var run = results;
    if (params.exclusive == 1u) {
        run = shifted_run(before, results);
    }
    let first = lane * LANE_ELEMENTS;
    let stride = params.output_axis_stride;
    store_run(output + first * stride, stride, count - min(first, count), run);
}
