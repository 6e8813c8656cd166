// Slot <slices>: what scan_bands and scan_strips have left of columns, from their first exceptional tile on. Columns
// without such a tile take no time. Windows are of whole tiles. Needs lib/slices/tile.wgsl.

#import "lib/slices/progress.wgsl"
#import "lib/slices/suspects.wgsl"

const IN_WHOLE_TILES = true;

// The element of the window that the pass begins with, or its length if there is nothing to do.
fn first_element(slice: u32) -> u32 {
    let suspect = state_word(column_word(slice, SUSPECT));
    if (suspect == 0u) {
        return params.length;
    }
    return max((suspect - 1u) * TILE, params.first) - params.first;
}

// How far a slice has come before element `k` of the window.
fn progress_before(slice: u32, k: u32) -> Progress {
    var progress = begin_slice();
    if (params.first + k > 0u) {
        begin_tile(&progress, fetch_carry(slice, state_word(column_word(slice, FLAGS))));
    }
    return progress;
}

// Leaves the progress to the next window, if there is one.
fn end_window(slice: u32, exceptions: u32, progress: ptr<function, Progress>) {
    if (params.suspend == 1u) {
        keep_suspect_carry(slice, (*progress).carry);
    }
}

// No other phase knows which tiles are exceptional, or is told.

fn tile_bit(i: u32) -> u32 {
    return 0u;
}

fn known_exceptions(slice: u32) -> u32 {
    return 0u;
}
