// Scans slices of at most 16 elements that follow each other in memory without gaps. An invocation takes `runs` runs of
// 16 elements, so many that slices begin and end with them. A slice is a left fold.
//
// For many slices of at most 4 elements, or whose lengths are no whole vectors. They are read and written 16 bytes at a
// time all the same, and types of less than a word need no atomics.
// Grid: workgroups of 64 invocations; each invocation takes 16 * runs / slice_length slices.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state (unused); elements begin at multiples of 16 bytes.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, slice_length, runs.
// Bytes moved: each element is read once and written once.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/elements.wgsl"
#import "lib/order.wgsl"
#import "lib/exceptional.wgsl"
#import "lib/run.wgsl"
#import "lib/run_slices.wgsl"
#import <reads>
#import <writes>

override slice_length: u32 = 3u;
override runs: u32 = 3u;

// Scans run `n` of the invocation's, whose first is at `place`, and returns its last result.
fn scan_run(n: u32, place: Place, before: Accumulator) -> Accumulator {
    let at = beginnings(slice_length, n * FANOUT % slice_length);
    let items = load_run(place.input + n * FANOUT, 1u, FANOUT);
    let results = fold_slices(at, before, items);
    var run = results;
    if (params.exclusive == 1u) {
        run = with_identities(at, shifted_run(before, results));
    }
    store_run(place.output + n * FANOUT, 1u, FANOUT, run);
    return results[15];
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let slice = (workgroup_number(workgroup) * 64u + lane) * (FANOUT * runs / slice_length);
    if (slice >= params.count) {
        return;
    }
    let place = place_of(slice);
    // The first three written out (their number is odd): where slices begin in them is known to compilers.
    var last = scan_run(0u, place, identity());
    if (runs > 1u) {
        last = scan_run(1u, place, last);
        last = scan_run(2u, place, last);
    }
    for (var n = 3u; n < runs; n += 1u) {
        last = scan_run(n, place, last);
    }
}
