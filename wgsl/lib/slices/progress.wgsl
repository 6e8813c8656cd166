// One element of a slice after the other, by one invocation: the canonical order inside a tile.

#import "lib/order/exceptional.wgsl"
#import "lib/order/carry.wgsl"

struct Progress {
    carry: Carry,                     // what came before the tile
    r: Accumulator,                   // fold of the current run
    q: Accumulator,                   // what the current run's results begin with, if has_q
    p: Accumulator,                   // fold of the tile's finished blocks
    left: Accumulator,                // the left fold, should the tile turn out to be exceptional
    last: Accumulator,                // the last result, or the identity
    excess: u32,                      // the largest excess of the tile's results
    has_q: bool,
    levels: array<Accumulator, 15>,   // Hillis-Steele's last 1, 2, 4 and 8 values before each of its four steps, each
                                      // from the latest on
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
    (*progress).excess = 0u;
}

// Takes in run number `run` of the tile, whose fold is r, and works out q for the run after it. Returns h of the run.
fn close_run(run: u32, progress: ptr<function, Progress>) -> Accumulator {
    // Hillis-Steele, a run at a time: a step of stride 2^k needs what the run 2^k back held before that step.
    let member = run % FANOUT;
    let r = (*progress).r;
    let w = (*progress).levels;
    let h1 = append(member >= 1u, w[0], r);
    let h2 = append(member >= 2u, w[2], h1);
    let h4 = append(member >= 4u, w[6], h2);
    let h = append(member >= 8u, w[14], h4);
    (*progress).levels = array<Accumulator, 15>(
        r, h1, w[1], h2, w[3], w[4], w[5], h4, w[7], w[8], w[9], w[10], w[11], w[12], w[13],
    );
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
