// Slot <slices>: all slices of a window. Has their progress in scratch memory, from one window to the next, and which
// tiles are exceptional. Needs lib/slices/tile.wgsl.

#import "lib/slices/progress.wgsl"
#import "lib/slices/kept.wgsl"

// Whether windows begin and end with tiles.
const IN_WHOLE_TILES = false;
// Whether slices are cut into windows: software drivers go through what they then do, in any case.
override in_windows: bool = true;

// The element of the window that the pass begins with, or its length if there is nothing to do.
fn first_element(slice: u32) -> u32 {
    if (phase == REPAIR && state_word(slice) == 0u) {
        return params.length;
    }
    return 0u;
}

// How far a slice has come before element `k` of the window, which is the first.
fn progress_before(slice: u32, k: u32) -> Progress {
    if (in_windows && params.resume == 1u) {
        return resume(slice);
    }
    return begin_slice();
}

// Leaves the progress to the next window, if there is one, and to another phase which tiles are exceptional. The one
// that writes such tiles again begins with what the one that found them began with.
fn end_window(slice: u32, exceptions: u32, progress: ptr<function, Progress>) {
    if (in_windows && params.suspend == 1u && !(phase == TRY && exceptions != 0u)) {
        suspend(slice, progress);
    }
    if ((phase == CHECK || phase == TRY) && (params.suspend == 0u || (params.first + params.length) % TILE == 0u)) {
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
