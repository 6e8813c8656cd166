// Slot <run_access>: a run of neighbouring elements, 16 bytes at a time: places are multiples of that, `stride` is 1,
// and what is stored fills whole quads. Needs slots/output/quads.wgsl.

#import "lib/memory/quads.wgsl"

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

// Stores the first `count` members.
fn store_run(place: u32, stride: u32, count: u32, run: Run) {
    let first = place >> (7u - output_log2_bits);
    let vectors = (count << output_log2_bits) >> 7u;
    let quads = quads_of_run(run);
    if (vectors > 0u) {
        set_output_unit(first, quads[0]);
    }
    if (output_log2_bits > 3u && vectors > 1u) {
        set_output_unit(first + 1u, quads[1]);
    }
    if (output_log2_bits > 4u && vectors > 2u) {
        set_output_unit(first + 2u, quads[2]);
    }
    if (output_log2_bits > 4u && vectors > 3u) {
        set_output_unit(first + 3u, quads[3]);
    }
    if (output_log2_bits > 5u && vectors > 4u) {
        set_output_unit(first + 4u, quads[4]);
    }
    if (output_log2_bits > 5u && vectors > 5u) {
        set_output_unit(first + 5u, quads[5]);
    }
    if (output_log2_bits > 5u && vectors > 6u) {
        set_output_unit(first + 6u, quads[6]);
    }
    if (output_log2_bits > 5u && vectors > 7u) {
        set_output_unit(first + 7u, quads[7]);
    }
}
