// Slot <reads>: a run of neighbouring elements, 16 bytes at a time: places are multiples of that, `stride` is 1.

#import "lib/quads.wgsl"

// The `count` elements (1 to 16) from `place` on; what follows them is without meaning.
fn load_run(place: u32, stride: u32, count: u32) -> Run {
    let first = place >> (7u - input_log2_bits);
    let last = ((count << input_log2_bits) - 1u) >> 7u;
    var quads: Quads;
    quads[0] = input_unit(first);
    if (input_log2_bits > 3u) {
        quads[1] = input_unit(first + min(1u, last));
    }
    if (input_log2_bits > 4u) {
        quads[2] = input_unit(first + min(2u, last));
        quads[3] = input_unit(first + min(3u, last));
    }
    if (input_log2_bits > 5u) {
        quads[4] = input_unit(first + min(4u, last));
        quads[5] = input_unit(first + min(5u, last));
        quads[6] = input_unit(first + min(6u, last));
        quads[7] = input_unit(first + min(7u, last));
    }
    return run_of_quads(quads);
}
