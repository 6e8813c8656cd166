// Computes one tile of a slice by a workgroup, and what the next tile goes on from. NaN and infinity appear where a
// left fold has them.
//
// A kernel calls fold_tile (slot <tile>), has invocation 0 set `carry`, and calls settle_tile, for exceptional tiles
// write_exceptional or what lib/tiles/left_fold_together.wgsl has, and put_tile.

#import "lib/order/exceptional.wgsl"
#import "lib/order/carry.wgsl"
#import <run_access>
#import <tile>

// What the tile goes on from; after settle_tile, what the next tile goes on from. Invocation 0 may read it at once
// where `number` is 0; else a barrier must come first.
var<workgroup> carry: Carry;
var<workgroup> ends: array<Accumulator, LANES>;
// 1 if a result of the tile is exceptional. There are two, so that one can be reset while the other is in use.
var<workgroup> exceptional: array<atomic<u32>, 2>;

// Sets what WGSL promises to be 0 at first: lavapipe 22.3 leaves what an earlier workgroup left.
fn begin_workgroup(lane: u32) {
    if (lane == 0u) {
        atomicStore(&exceptional[0], 0u);
        atomicStore(&exceptional[1], 0u);
    }
}

#import "lib/order/left_fold.wgsl"

// What put_tile still needs.
struct Settled {
    before: Accumulator,    // the result before the invocation's first
    exceptional: bool,      // the tile is, and a left fold takes the place of its results
}

// Works out the results of the tile of `count` elements, and unless it is exceptional the next carry. `classes`: the
// elements were read as classes, of which a tile may begin and end with any run. `number` is the tile's among those
// that the workgroup takes.
fn settle_tile(lane: u32, count: u32, number: u32, classes: bool) -> Settled {
    let parity = number & 1u;
    workgroupBarrier();
    if (lane == 0u) {
        atomicStore(&exceptional[1u - parity], 0u);
    }
    let present = has_base(carry);
    var base = base_of(carry);
    if (classes) {
        base = carry.last;
    }
    let before = carry.last;
    var settled = Settled(before, false);
    let largest = finish_tile(lane, present, base, count);
    if (is_excessive(largest) && !classes) {
        atomicStore(&exceptional[parity], 1u);
    }
    ends[lane] = end_of_lane();
    workgroupBarrier();
    settled.exceptional = EXCEPTIONS && atomicLoad(&exceptional[parity]) == 1u;
    if (lane > 0u) {
        settled.before = ends[lane - 1u];
    } else if (classes) {
        carry = carry_exceptional(ends[(count - 1u) / LANE_ELEMENTS]);
    } else if (!settled.exceptional) {
        carry = carry_on(carry, total_of_tile, ends[LANES - 1u]);
    }
    return settled;
}

// Writes the tile if it is exceptional, and sets the next carry, by one invocation. They take turns: software drivers
// end an invocation's loops after so many iterations, and do not count those in which neither it nor its seven
// neighbours are (docs/kernels.md).
fn write_exceptional(lane: u32, input: u32, output: u32, count: u32, number: u32, settled: Settled) {
    if (settled.exceptional && lane == (number * 8u) % LANES) {
        let last = write_left_fold(has_base(carry), carry.last, input, output, count);
        carry = carry_exceptional(last);
    }
}

// Writes the results, unless write_exceptional did. All invocations do it, as pieces may have barriers here.
fn put_tile(lane: u32, output: u32, count: u32, settled: Settled) {
    store_tile(lane, output, select(count, 0u, settled.exceptional), settled.before);
}
