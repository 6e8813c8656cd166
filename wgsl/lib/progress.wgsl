// One element of a slice after the other, by one invocation: the canonical order inside a tile.

#import "lib/exceptional.wgsl"
#import "lib/carry.wgsl"

struct Progress {
    carry: Carry,                     // what came before the tile
    r: Accumulator,                   // fold of the current run
    q: Accumulator,                   // what the current run's results begin with, if has_q
    p: Accumulator,                   // fold of the tile's finished blocks
    left: Accumulator,                // the left fold, should the tile turn out to be exceptional
    last: Accumulator,                // the last result, or the identity
    largest: u32,                     // the largest magnitude among the tile's results
    has_q: bool,
    levels: array<Accumulator, 15>,   // Hillis-Steele's last 1, 2, 4 and 8 values before each of its four steps
}

fn begin_slice() -> Progress {
    var progress: Progress;
    begin_tile(&progress, fresh_carry());
    return progress;
}

fn begin_tile(progress: ptr<function, Progress>, carry: Carry) {
    (*progress).carry = carry;
    (*progress).q = base_of(carry);
    (*progress).has_q = has_base(carry);
    (*progress).left = carry.last;
    (*progress).last = carry.last;
    (*progress).largest = 0u;
}

fn climb(stride: u32, member: u32, h: Accumulator, progress: ptr<function, Progress>) -> Accumulator {
    let slot = stride - 1u + member % stride;
    let before = (*progress).levels[slot];
    (*progress).levels[slot] = h;
    return append(member >= stride, before, h);
}

// Takes in run number `run` of the tile, whose fold is r, and works out q for the run after it. Returns h of the run.
fn close_run(run: u32, progress: ptr<function, Progress>) -> Accumulator {
    // Hillis-Steele, a run at a time: a step of stride 2^k needs what the runs 2^k back held before that step.
    let member = run % FANOUT;
    var h = climb(1u, member, (*progress).r, progress);
    h = climb(2u, member, h, progress);
    h = climb(4u, member, h, progress);
    h = climb(8u, member, h, progress);
    var q = base_of((*progress).carry);
    var present = has_base((*progress).carry);
    if (member == FANOUT - 1u) {
        (*progress).p = append(run >= FANOUT, (*progress).p, h);
        q = append(present, q, (*progress).p);
    } else {
        if (run >= FANOUT) {
            q = append(present, q, (*progress).p);
            present = true;
        }
        q = append(present, q, h);
    }
    (*progress).q = q;
    (*progress).has_q = true;
    return h;
}

// Goes on to the next tile, after the last run of a full one: `by_left_fold` if its results are those of the left fold.
fn close_tile(progress: ptr<function, Progress>, by_left_fold: bool) {
    if (by_left_fold) {
        begin_tile(progress, carry_exceptional((*progress).left));
    } else {
        begin_tile(progress, carry_on((*progress).carry, (*progress).p, (*progress).last));
    }
}

// Takes in element `i` of the tile. `is_continued`: the slice has elements before it.
fn take_item(i: u32, is_continued: bool, item: Accumulator, progress: ptr<function, Progress>) {
    (*progress).r = append(i % FANOUT > 0u, (*progress).r, item);
    (*progress).last = append((*progress).has_q, (*progress).q, (*progress).r);
    (*progress).left = append(is_continued, (*progress).left, item);
    (*progress).largest = max((*progress).largest, magnitude((*progress).last));
}
