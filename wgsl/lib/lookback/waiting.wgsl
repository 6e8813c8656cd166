// How a workgroup waits for what others post: so many looks, and then it gives up. No GPU promises that the others ever
// run. Needs lib/lookback/words.wgsl.

// How many times to look for what others post before the tile, or part of one, is left. At 0
// scan_lookback does not look at all.
override patience: u32 = 4000u;

// Whether anything was not there at the last look.
var<workgroup> missing: atomic<u32>;

fn note_missing() {
    atomicStore(&missing, 1u);
}

fn forget_missing() {
    atomicStore(&missing, 0u);
}

fn is_missing() -> bool {
    return atomicLoad(&missing) == 1u;
}
