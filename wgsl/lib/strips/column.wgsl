// One column of an invocation in a strip: its run of each stretch of rows, and what the next stretch begins with.
// Needs <cells>, lib/order/run.wgsl and lib/order/run_reach.wgsl.


struct Column {
    slice: u32,
    carry: Carry,           // of the tile; only in the workgroup's last run with the last result
    p: Accumulator,         // fold of the tile's finished blocks
    before: Accumulator,    // if exclusive, the result before the stretch
    r: Run,                 // of the invocation's run; later its results
    h: Accumulator,         // the run's total; later its h
    reach: Reach,           // of a product
    excess: u32,            // the largest of the tile so far
}

// What each run of both columns has at hand for the others. Two shelves: one can be filled while the other is read.
// <cells> says how many accumulators each has.
var<workgroup> shelves: array<array<Accumulator, SHELF>, 2>;

// Takes in the run `elements`, of which `count` are there.
fn take_run(elements: Run, count: u32, x: ptr<function, Column>) {
    var items = elements;
    if (EXCEPTIONS && count < FANOUT) {
        items = padded_run(items, count);
    }
    (*x).r = fold_run(items);
    (*x).h = (*x).r[15];
    if (EXCEPTIONS && product) {
        (*x).reach = reach_of_run(items, (*x).r);
    }
}

// Two steps of Hillis-Steele for run `j` of its block, whose place on the shelf is `place`.
fn take_steps(shelf: u32, place: u32, j: u32, stride: u32, own: Accumulator) -> Accumulator {
    let near = shelves[shelf][place - lanes * min(j, stride)];
    let far = shelves[shelf][place - lanes * min(j, 2u * stride)];
    return two_steps(j, stride, own, near, far, shelves[shelf][place - lanes * min(j, 3u * stride)]);
}

// What comes before an invocation's run inside its tile, where it is there.
struct Lead {
    p: Accumulator,     // fold of the finished blocks
    h: Accumulator,     // of the run before it in its block
    has_p: bool,
    has_h: bool,
}

// Of the stretch from element `i` of the slices on. All h are on the shelf, this column's from `place` on. Takes in the
// stretch's blocks.
fn lead_of_run(shelf: u32, place: u32, lane: u32, i: u32, x: ptr<function, Column>) -> Lead {
    let run = lane / lanes;
    let finished = (i >> BLOCK_SHIFT) % FANOUT;
    var p = (*x).p;
    for (var block = 0u; block < BLOCKS; block += 1u) {
        if (block == run / FANOUT) {
            p = (*x).p;
        }
        let total = shelves[shelf][place + (FANOUT * block + FANOUT - 1u) * lanes + lane % lanes];
        (*x).p = append(finished + block > 0u, (*x).p, total);
    }
    let has_h = run % FANOUT > 0u;
    return Lead(p, shelves[shelf][place + lane - select(0u, lanes, has_h)], finished + run / FANOUT > 0u, has_h);
}

// What results of the run begin with, if there is anything before it.
struct Start {
    q: Accumulator,
    has_q: bool,
}

fn start_of_run(lead: Lead, is_based: bool, base: Accumulator) -> Start {
    var q = base;
    if (lead.has_p) {
        q = append(is_based, base, lead.p);
    }
    if (lead.has_h) {
        q = append(is_based | lead.has_p, q, lead.h);
    }
    return Start(q, is_based | lead.has_p | lead.has_h);
}

// Makes results of the run, in the stretch from element `i` of the slices on, as lead_of_run has it.
fn finish_run(shelf: u32, place: u32, lane: u32, i: u32, count: u32, x: ptr<function, Column>) {
    let lead = lead_of_run(shelf, place, lane, i, x);
    let start = start_of_run(lead, has_base((*x).carry), base_of((*x).carry));
    let r = (*x).r[15];
    (*x).r = results_of_run(start.has_q, start.q, (*x).r);
    var largest = 0u;
    if (product) {
        largest = excess_of_reach((*x).reach, r, start.has_q, start.q);
    } else {
        largest = excess_of_run((*x).r, FANOUT);
    }
    (*x).excess = max((*x).excess, select(0u, largest, count > 0u));
}

// The result before the invocation's run; those of all runs' ends are on the shelf.
fn before_run(shelf: u32, place: u32, lane: u32, x: ptr<function, Column>) -> Accumulator {
    var before = (*x).before;
    if (lane >= lanes) {
        before = shelves[shelf][place + lane - lanes];
    }
    (*x).before = shelves[shelf][place + LANES - lanes + lane % lanes];
    return before;
}
