// The progress of slices in scratch memory, from one window to the next. Needs lib/slices/tile.wgsl.
//
// Word by word, the slices side by side, behind a word for each that tells which tiles are exceptional. A window
// fetches what it needs and keeps what it has changed. Between tiles all follows from the carry, which a piece of a
// slice therefore begins and ends with; inside a tile the carry stays as it is.

#import "lib/memory/state.wgsl"
#import "lib/memory/accumulators.wgsl"

// The numbers of a slice's words: accumulators of up to two, the carry's first.
const CARRY = 0u;
const RESULT = 4u;     // the carry's last one: of left folds the last result, wherever the window ends
const FLAGS = 6u;
const EXCESS = 7u;
const R = 8u;
const Q = 10u;
const P = 12u;
const LEFT = 14u;
const LAST = 16u;
const LEVELS = 18u;

// How many keep progress: both phases of slices in place.
fn keepers() -> u32 {
    return select(1u, 2u, phase == CHECK || phase == WRITE);
}

fn progress_word(slice: u32, number: u32) -> u32 {
    return (1u + number * keepers() + u32(phase == CHECK)) * params.count + slice;
}

fn fetch(slice: u32, number: u32) -> Accumulator {
    return get_accumulator(progress_word(slice, number), keepers() * params.count);
}

fn keep(slice: u32, number: u32, value: Accumulator) {
    put_accumulator(progress_word(slice, number), keepers() * params.count, value);
}

fn fetch_carry(slice: u32) -> Carry {
    return carry_of(
        fetch(slice, CARRY), fetch(slice, CARRY + 2u), fetch(slice, RESULT), state_word(progress_word(slice, FLAGS)),
    );
}

fn keep_carry(slice: u32, carry: Carry) {
    keep(slice, CARRY, carry.s);
    keep(slice, CARRY + 2u, carry.c);
    keep(slice, RESULT, carry.last);
    set_state_word(progress_word(slice, FLAGS), carry_flags(carry));
}

// Level 2^k has the last 2^k runs, each where its number comes round to: entry `i` of the array is of the run that is
// `age_of(i)` runs before the last.

fn level_of(i: u32) -> u32 {
    return select(select(select(8u, 4u, i < 7u), 2u, i < 3u), 1u, i < 1u);
}

fn age_of(i: u32) -> u32 {
    return i + 1u - level_of(i);
}

fn level_number(i: u32, runs: u32) -> u32 {
    return LEVELS + 2u * (level_of(i) - 1u + (runs - 1u - age_of(i)) % level_of(i));
}

// The runs that end before the window, and in it.
fn runs_before() -> u32 {
    return params.first >> RUN_SHIFT;
}

fn runs_within() -> u32 {
    return ((params.first + params.length) >> RUN_SHIFT) - runs_before();
}

fn resume(slice: u32) -> Progress {
    var progress: Progress;
    if (folds_left()) {
        begin_tile(&progress, carry_exceptional(fetch(slice, RESULT)));
        return progress;
    }
    let i = params.first % TILE;
    var carry = fresh_carry();
    if (params.first >= TILE) {
        carry = fetch_carry(slice);
    }
    begin_tile(&progress, carry);
    if (i == 0u) {
        return progress;
    }
    progress.last = fetch(slice, LAST);
    if (phase < WRITE) {
        progress.excess = state_word(progress_word(slice, EXCESS));
    }
    if (phase == CHECK) {
        progress.left = fetch(slice, LEFT);
    }
    if (i % FANOUT > 0u) {
        progress.r = fetch(slice, R);
    }
    if (i >= FANOUT) {
        progress.q = fetch(slice, Q);
        progress.has_q = true;
    }
    if (i >> BLOCK_SHIFT > 0u) {
        progress.p = fetch(slice, P);
    }
    for (var n = 0u; n < 15u; n += 1u) {
        if (age_of(n) < runs_before() % FANOUT && age_of(n) + runs_within() >= level_of(n)) {
            progress.levels[n] = fetch(slice, level_number(n, runs_before()));
        }
    }
    return progress;
}

fn suspend(slice: u32, progress: ptr<function, Progress>) {
    let i = (params.first + params.length) % TILE;
    if (i == 0u) {
        keep_carry(slice, (*progress).carry);
        return;
    }
    if (folds_left()) {
        keep(slice, RESULT, (*progress).last);
        return;
    }
    keep(slice, LAST, (*progress).last);
    if (phase < WRITE) {
        set_state_word(progress_word(slice, EXCESS), (*progress).excess);
    }
    if (phase == CHECK) {
        keep(slice, LEFT, (*progress).left);
    }
    if (i % FANOUT > 0u) {
        keep(slice, R, (*progress).r);
    }
    if (runs_within() > 0u) {
        keep(slice, Q, (*progress).q);
    }
    if (i >> BLOCK_SHIFT > (params.first % TILE) >> BLOCK_SHIFT) {
        keep(slice, P, (*progress).p);
    }
    let runs = runs_before() + runs_within();
    for (var n = 0u; n < 15u; n += 1u) {
        if (age_of(n) < min(runs % FANOUT, runs_within())) {
            keep(slice, level_number(n, runs), (*progress).levels[n]);
        }
    }
}
