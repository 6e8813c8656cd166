// Slot <slices>: all slices of a window. Has their progress in scratch memory, from one window to the next, and which
// tiles are exceptional.
//
// Word by word, the slices side by side. The checking passes and the writing passes each keep their own progress. The
// checking passes tell the writing passes which tiles of the group of windows are exceptional. Needs
// lib/slices/tile.wgsl.

#import "lib/slices/progress.wgsl"
#import "lib/memory/state.wgsl"
#import "lib/memory/accumulators.wgsl"

// Whether windows begin and end with tiles.
const IN_WHOLE_TILES = false;
// Whether slices are cut into windows: software drivers go through what they then do, in any case.
override in_windows: bool = true;

// Words of a slice: its carry (three accumulators of up to two words, tiles, has_s), excess, has_q and 20 accumulators.
// Of integers only the carry, which is the last result wherever a window ends.
const PROGRESS_WORDS = 50u;
const LEVELS = 20u;

fn progress_word(slice: u32, number: u32) -> u32 {
    return (1u + select(0u, PROGRESS_WORDS, phase == CHECK) + number) * params.count + slice;
}

fn fetch(slice: u32, number: u32) -> Accumulator {
    return get_accumulator(progress_word(slice, number), params.count);
}

fn keep(slice: u32, number: u32, value: Accumulator) {
    put_accumulator(progress_word(slice, number), params.count, value);
}

// Between tiles all follows from the carry, which a piece of a slice therefore begins and ends with.
fn is_between_tiles(i: u32) -> bool {
    return i % TILE == 0u;
}

fn resume(slice: u32) -> Progress {
    var progress: Progress;
    let tiles = state_word(progress_word(slice, 6u));
    let has_s = state_word(progress_word(slice, 7u)) == 1u;
    begin_tile(&progress, Carry(fetch(slice, 0u), fetch(slice, 2u), fetch(slice, 4u), tiles, has_s));
    if (EXACT || is_between_tiles(params.first)) {
        return progress;
    }
    progress.excess = state_word(progress_word(slice, 8u));
    progress.has_q = state_word(progress_word(slice, 9u)) == 1u;
    progress.r = fetch(slice, 10u);
    progress.q = fetch(slice, 12u);
    progress.p = fetch(slice, 14u);
    progress.left = fetch(slice, 16u);
    progress.last = fetch(slice, 18u);
    for (var i = 0u; i < 15u; i += 1u) {
        progress.levels[i] = fetch(slice, LEVELS + 2u * i);
    }
    return progress;
}

// The element of the window that the pass begins with.
fn first_element(slice: u32) -> u32 {
    return 0u;
}

// How far a slice has come before element `k` of the window, which is the first.
fn progress_before(slice: u32, k: u32) -> Progress {
    if (in_windows && params.resume == 1u) {
        return resume(slice);
    }
    return begin_slice();
}

fn suspend(slice: u32, progress: ptr<function, Progress>) {
    var carry = (*progress).carry;
    if (EXACT) {
        carry = carry_exceptional((*progress).last);
    }
    keep(slice, 0u, carry.s);
    keep(slice, 2u, carry.c);
    keep(slice, 4u, carry.last);
    set_state_word(progress_word(slice, 6u), carry.tiles);
    set_state_word(progress_word(slice, 7u), u32(carry.has_s));
    if (EXACT || is_between_tiles(params.first + params.length)) {
        return;
    }
    set_state_word(progress_word(slice, 8u), (*progress).excess);
    set_state_word(progress_word(slice, 9u), u32((*progress).has_q));
    keep(slice, 10u, (*progress).r);
    keep(slice, 12u, (*progress).q);
    keep(slice, 14u, (*progress).p);
    keep(slice, 16u, (*progress).left);
    keep(slice, 18u, (*progress).last);
    for (var i = 0u; i < 15u; i += 1u) {
        keep(slice, LEVELS + 2u * i, (*progress).levels[i]);
    }
}

// Leaves the progress to the next window, if there is one, and to the writing passes which tiles are exceptional.
fn end_window(slice: u32, exceptions: u32, progress: ptr<function, Progress>) {
    if (in_windows && params.suspend == 1u) {
        suspend(slice, progress);
    }
    if (phase == CHECK) {
        set_state_word(slice, exceptions);
    }
}

// Which tiles of the group of windows are exceptional: a bit each, in word `slice`.

fn tile_bit(i: u32) -> u32 {
    return 1u << ((i - params.checked_first) >> TILE_SHIFT);
}

fn known_exceptions(slice: u32) -> u32 {
    if (EXCEPTIONS && phase == WRITE) {
        return state_word(slice);
    }
    return 0u;
}
