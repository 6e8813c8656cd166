// Slot <reads>: a run of neighbouring elements of 8 or 16 bits, at any place in memory; `stride` is 1.

#import "lib/quads.wgsl"
#import "lib/vector_packed.wgsl"

// The `count` elements (1 to 16) from `place` on; what follows them is without meaning.
fn load_run(place: u32, stride: u32, count: u32) -> Run {
    var quads: Quads;
    quads[0] = load_vector(place, min(count, 128u >> input_log2_bits));
    if (input_log2_bits > 3u) {
        quads[1] = load_vector(place + min(8u, count - 1u), max(count, 9u) - 8u);
    }
    return run_of_quads(quads);
}
