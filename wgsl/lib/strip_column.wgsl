// One column of an invocation in a strip: its run of each stretch of rows, and what the next stretch begins with.
// Needs <cells>, lib/run.wgsl, lib/run_reach.wgsl and lib/suspects.wgsl.

#import "lib/two_steps.wgsl"

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
var<workgroup> shelves: array<array<Accumulator, 512>, 2>;
// Of each column 1 + the first tile that is exceptional.
var<workgroup> suspects: array<atomic<u32>, 32>;
const NO_SUSPECT = 0xffffffffu;

fn begin_column(slice: u32) -> Column {
    var x: Column;
    x.slice = slice;
    x.carry = fresh_carry();
    if (params.first > 0u) {
        let tile = params.first >> TILE_SHIFT;
        x.carry = fetch_carry(min(slice, params.count - 1u), tile % FANOUT, tile >= FANOUT);
    }
    x.before = x.carry.last;
    return x;
}

fn begin_suspect(suspect: u32, slice: u32) {
    var known = 0u;
    if (EXCEPTIONS && params.first > 0u) {
        known = state_word(column_word(min(slice, params.count - 1u), SUSPECT));
    }
    atomicStore(&suspects[suspect], select(known, NO_SUSPECT, known == 0u));
}

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

// Makes results of the run, in the stretch from element `i` of the slices on. All h are on the shelf, this column's
// from `place` on.
fn finish_run(shelf: u32, place: u32, lane: u32, i: u32, count: u32, x: ptr<function, Column>) {
    let run = lane / lanes;
    let base = base_of((*x).carry);
    let is_based = has_base((*x).carry);
    let finished = (i >> BLOCK_SHIFT) % FANOUT;
    var q = base;
    for (var block = 0u; block < BLOCKS; block += 1u) {
        let goes_on = finished + block > 0u;
        if (block == run / FANOUT && goes_on) {
            q = append(is_based, base, (*x).p);
        }
        let total = shelves[shelf][place + (FANOUT * block + FANOUT - 1u) * lanes + lane % lanes];
        (*x).p = append(goes_on, (*x).p, total);
    }
    if (run % FANOUT > 0u) {
        q = append(is_based | (finished + run / FANOUT > 0u), q, shelves[shelf][place + lane - lanes]);
    }
    let has_q = i + run > 0u;
    let r = (*x).r[15];
    (*x).r = results_of_run(has_q, q, (*x).r);
    var largest = 0u;
    if (product) {
        largest = excess_of_reach((*x).reach, r, has_q, q);
    } else {
        largest = excess_of_run((*x).r, FANOUT);
    }
    (*x).excess = max((*x).excess, select(0u, largest, count > 0u));
}

// Says whether the tile is exceptional, which all runs do before a barrier.
fn suspect_tile(suspect: u32, tile: u32, x: ptr<function, Column>) {
    if (is_excessive((*x).excess)) {
        atomicMin(&suspects[suspect], tile + 1u);
    }
}

// Goes on to the next tile. `is_keeper`: the invocation has the tile's last run.
fn close_tile(suspect: u32, tile: u32, is_keeper: bool, x: ptr<function, Column>) {
    if (EXCEPTIONS && is_keeper && tile > 0u && (*x).slice < params.count) {
        if (atomicLoad(&suspects[suspect]) == tile + 1u) {
            keep_suspect_carry((*x).slice, (*x).carry);
        }
    }
    (*x).carry = carry_on((*x).carry, (*x).p, (*x).r[15]);
    (*x).excess = 0u;
}

fn end_column(suspect: u32, x: ptr<function, Column>) {
    if ((*x).slice >= params.count) {
        return;
    }
    let found = atomicLoad(&suspects[suspect]);
    if (EXCEPTIONS) {
        set_state_word(column_word((*x).slice, SUSPECT), select(found, 0u, found == NO_SUSPECT));
    }
    if (params.suspend == 1u && (!EXCEPTIONS || found == NO_SUSPECT)) {
        keep_carry((*x).slice, (*x).carry);
    }
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
