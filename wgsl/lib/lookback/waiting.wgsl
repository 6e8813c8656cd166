// How a workgroup waits for what others post: so many looks, and then it gives up. No GPU promises that the others ever
// run. Needs lib/lookback/words.wgsl.

// How many times to look for what others post before the tile is left.
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

// Reads an accumulator that another workgroup posts, or notes that it is missing.
fn wait_for(word: u32) -> Accumulator {
    var found = read_accumulator(word);
    for (var look = 0u; look < patience && found.written == 0u; look += 1u) {
        found = read_accumulator(word);
    }
    if (found.written == 0u) {
        note_missing();
    }
    return found.value;
}
