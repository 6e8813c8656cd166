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
#import <reads>
#import <writes>

override slice_length: u32 = 3u;
override runs: u32 = 3u;

// Returns a bit for each element of a run that begins a slice; the run's first element is number `position` of its
// slice.
fn beginnings(position: u32) -> u32 {
    // Bits 0, slice_length, 2 * slice_length, ...: (2^(k * slice_length) - 1) / (2^slice_length - 1).
    let every = ((1u << (31u / slice_length * slice_length)) - 1u) / ((1u << slice_length) - 1u);
    return every << ((slice_length - position) % slice_length);
}

fn begins(at: u32, m: u32) -> bool {
    return ((at >> m) & 1u) == 1u;
}

// An element's result after the one `before`. Without branches, like all arithmetic that is inlined many times
// (docs/kernels.md).
fn next(at: u32, m: u32, before: Accumulator, item: Accumulator) -> Accumulator {
    return select(fold(before, item), item, begins(at, m));
}

// The results of the slices that begin `at` some of the run's elements; the first continues `before`.
fn fold_slices(at: u32, before: Accumulator, items: Run) -> Run {
    var r = items;
    r[0] = next(at, 0u, before, items[0]);
    r[1] = next(at, 1u, r[0], items[1]);
    r[2] = next(at, 2u, r[1], items[2]);
    r[3] = next(at, 3u, r[2], items[3]);
    r[4] = next(at, 4u, r[3], items[4]);
    r[5] = next(at, 5u, r[4], items[5]);
    r[6] = next(at, 6u, r[5], items[6]);
    r[7] = next(at, 7u, r[6], items[7]);
    r[8] = next(at, 8u, r[7], items[8]);
    r[9] = next(at, 9u, r[8], items[9]);
    r[10] = next(at, 10u, r[9], items[10]);
    r[11] = next(at, 11u, r[10], items[11]);
    r[12] = next(at, 12u, r[11], items[12]);
    r[13] = next(at, 13u, r[12], items[13]);
    r[14] = next(at, 14u, r[13], items[14]);
    r[15] = next(at, 15u, r[14], items[15]);
    return r;
}

fn identity_at(at: u32, m: u32, item: Accumulator) -> Accumulator {
    return select(item, identity(), begins(at, m));
}

// The run with the identity where slices begin.
fn with_identities(at: u32, run: Run) -> Run {
    return Run(
        identity_at(at, 0u, run[0]), identity_at(at, 1u, run[1]), identity_at(at, 2u, run[2]),
        identity_at(at, 3u, run[3]), identity_at(at, 4u, run[4]), identity_at(at, 5u, run[5]),
        identity_at(at, 6u, run[6]), identity_at(at, 7u, run[7]), identity_at(at, 8u, run[8]),
        identity_at(at, 9u, run[9]), identity_at(at, 10u, run[10]), identity_at(at, 11u, run[11]),
        identity_at(at, 12u, run[12]), identity_at(at, 13u, run[13]), identity_at(at, 14u, run[14]),
        identity_at(at, 15u, run[15]),
    );
}

// Scans run `n` of the invocation's, whose first is at `place`, and returns its last result.
fn scan_run(n: u32, place: Place, before: Accumulator) -> Accumulator {
    let at = beginnings(n * FANOUT % slice_length);
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
