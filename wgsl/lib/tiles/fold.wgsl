// The canonical order inside a tile by 256 invocations with a run of 16 elements each. The pieces of slot <tile> that
// import it say how runs are read and written (load_lane, store_lane), and how the totals of blocks are folded
// (fold_blocks): the first ones, before the invocation's block, if there are any, and in invocation 0 all of them.

#import "lib/order/run.wgsl"
#import "lib/order/run_reach.wgsl"

struct Folds {
    first: Accumulator,
    all: Accumulator,
}

const LANES = 256u;
const LANE_ELEMENTS = 16u;

// r(i) of the invocation's run; later its results.
var<private> results: Run;
// The elements themselves.
var<private> taken: Run;
// Of a product: how far the run reaches, and later its results.
var<private> reached: Reach;
var<private> extremes: Extent;
var<private> total_of_tile: Accumulator; // in invocation 0
var<workgroup> shelves: array<array<Accumulator, 256>, 2>;

// Reads and folds the tile of `count` elements that begins at `input`, and leaves h of every run on shelf 0; a barrier
// must follow.
fn fold_tile(lane: u32, input: u32, count: u32, classes: bool) {
    var items = load_lane(lane, input, count);
    if (EXCEPTIONS && classes) {
        items = classes_of_run(items);
    }
    taken = items;
    if (product && EXCEPTIONS) {
        items = padded_run(items, count - min(lane * LANE_ELEMENTS, count - 1u));
    }
    results = fold_run(items);
    reached = reach_of_run(items, results);
    // Hillis-Steele over the run totals of each block.
    let j = lane % FANOUT;
    var h = results[15];
    var shelf = 0u;
    for (var stride = 1u; stride < FANOUT; stride <<= 2u) {
        shelves[shelf][lane] = h;
        workgroupBarrier();
        let near = shelves[shelf][lane - min(j, stride)];
        let far = shelves[shelf][lane - min(j, 2u * stride)];
        h = two_steps(j, stride, h, near, far, shelves[shelf][lane - min(j, 3u * stride)]);
        shelf = 1u - shelf;
    }
    shelves[0][lane] = h;
}

// Turns what fold_tile left into results that go on from `base`, where there is one. Returns the largest excess.
fn finish_tile(lane: u32, has_base: bool, base: Accumulator, count: u32) -> u32 {
    let block = lane / FANOUT;
    let blocks = fold_blocks(lane);
    total_of_tile = blocks.all;
    var q = base;
    var present = has_base;
    if (block > 0u) {
        q = append(present, q, blocks.first);
        present = true;
    }
    if (lane % FANOUT > 0u) {
        q = append(present, q, shelves[0][lane - 1u]);
        present = true;
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

// Writes the results; `before` is the result before the invocation's first. All invocations of the workgroup call it.
fn store_tile(lane: u32, output: u32, count: u32, before: Accumulator) {
    var run = results;
    if (params.exclusive == 1u) {
        run = shifted_run(before, results);
    }
    store_lane(lane, output, count, run);
}
