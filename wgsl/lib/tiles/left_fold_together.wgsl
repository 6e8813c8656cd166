// The left fold of an exceptional tile by a workgroup. All invocations read and write elements, which go through
// workgroup memory a block at a time, and one of them folds: a GPU's memory is far away from one that is alone.
// Needs lib/tiles/step.wgsl.

// Whether exceptional tiles are folded so.
override together: bool = false;

var<workgroup> is_left_fold: u32;
var<workgroup> folded: Accumulator;

fn leave_run(place: u32, run: Run) {
    ends[place] = run[0];
    ends[place + 1u] = run[1];
    ends[place + 2u] = run[2];
    ends[place + 3u] = run[3];
    ends[place + 4u] = run[4];
    ends[place + 5u] = run[5];
    ends[place + 6u] = run[6];
    ends[place + 7u] = run[7];
    ends[place + 8u] = run[8];
    ends[place + 9u] = run[9];
    ends[place + 10u] = run[10];
    ends[place + 11u] = run[11];
    ends[place + 12u] = run[12];
    ends[place + 13u] = run[13];
    ends[place + 14u] = run[14];
    ends[place + 15u] = run[15];
}

fn fetch_run(place: u32) -> Run {
    return Run(
        ends[place], ends[place + 1u], ends[place + 2u], ends[place + 3u],
        ends[place + 4u], ends[place + 5u], ends[place + 6u], ends[place + 7u],
        ends[place + 8u], ends[place + 9u], ends[place + 10u], ends[place + 11u],
        ends[place + 12u], ends[place + 13u], ends[place + 14u], ends[place + 15u],
    );
}

// Makes a left fold of the block in workgroup memory.
fn fold_block_left(goes_on: bool) {
    var last = folded;
    for (var place = 0u; place < LANES; place += FANOUT) {
        var items = fetch_run(place);
        if (goes_on || place > 0u) {
            items[0] = fold(last, items[0]);
        }
        let run = left_fold_run(items);
        leave_run(place, run);
        last = run[15];
    }
    folded = last;
}

// Makes a left fold of the tile if it is exceptional, and sets the next carry.
fn fold_together(lane: u32, settled: Settled) -> Settled {
    if (lane == 0u) {
        is_left_fold = u32(settled.exceptional);
        folded = carry.last;
    }
    if (workgroupUniformLoad(&is_left_fold) == 0u) {
        return settled;
    }
    let goes_on = has_base(carry);
    let before = carry.last;
    for (var block = 0u; block < FANOUT; block += 1u) {
        if (lane / FANOUT == block) {
            leave_run(lane % FANOUT * FANOUT, taken);
        }
        workgroupBarrier();
        if (lane == block * FANOUT) {
            fold_block_left(goes_on || block > 0u);
        }
        workgroupBarrier();
        if (lane / FANOUT == block) {
            results = fetch_run(lane % FANOUT * FANOUT);
        }
        workgroupBarrier();
    }
    ends[lane] = end_of_lane();
    workgroupBarrier();
    if (lane == 0u) {
        carry = carry_exceptional(ends[LANES - 1u]);
        return Settled(before, false);
    }
    return Settled(ends[lane - 1u], false);
}
