// Slot <run_access>: a run of neighbouring elements of 8 or 16 bits, at any place in memory; `stride` is 1. Needs
// slots/output/packed.wgsl.

#import "lib/memory/quads.wgsl"
#import "slots/vector/packed.wgsl"
#import "lib/memory/put_words.wgsl"

// The `count` elements (1 to 16) from `place` on; what follows them is without meaning.
fn load_run(place: u32, stride: u32, count: u32) -> Run {
    var quads: Quads;
    quads[0] = load_vector(place, min(count, 128u >> input_log2_bits));
    if (input_log2_bits > 3u) {
        quads[1] = load_vector(place + min(8u, count - 1u), max(count, 9u) - 8u);
    }
    return run_of_quads(quads);
}

// Stores the first `count` members.
fn store_run(place: u32, stride: u32, count: u32, run: Run) {
    let quads = quads_of_run(run);
    if (output_log2_bits == 3u) {
        put_words(place, count, quads[0]);
    } else {
        put_eight_words(place, count, quads[0], quads[1]);
    }
}
