// Slot <writes>: a run of neighbouring elements of 8 or 16 bits, at any place in memory; `stride` is 1. Needs
// output_packed.

#import "lib/quads.wgsl"
#import "lib/put_words.wgsl"

// Stores the first `count` members.
fn store_run(place: u32, stride: u32, count: u32, run: Run) {
    let quads = quads_of_run(run);
    if (output_log2_bits == 3u) {
        put_words(place, count, quads[0]);
    } else {
        put_eight_words(place, count, quads[0], quads[1]);
    }
}
