// Scans slices of at most 16 elements: each is a single run, which is a left fold.
//
// An invocation takes one slice at a time, or, of slices that follow each other in memory without gaps, as many as fill
// `runs` runs. These are read and written 16 bytes at a time whatever a slice's length, and types of less than a word
// need no atomics.
// On software drivers an invocation takes many, one after the other. A product is multiplied without a look at each
// result first; only where one is tiny does the invocation go on as left folds have it.
// Grid: workgroups of `lanes` invocations, which go through `together` times as many slices or runs as they are.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state (unused). Runs begin at multiples of 16 bytes.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, slice_length, runs, lanes, together.
// Bytes moved: each element is read once and written once.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/memory/elements.wgsl"
#import "lib/order/order.wgsl"
#import "lib/order/exceptional.wgsl"
#import "lib/order/run.wgsl"
#import "lib/order/run_reach.wgsl"
#import "lib/order/run_slices.wgsl"
#import <run_access>

// params.length if that is worth a pipeline of its own, where compilers leave out what a slice does not have; else 0.
override slice_length: u32 = 0u;
// What an invocation takes at a time: one slice where there are 0 runs.
override runs: u32 = 0u;
override lanes: u32 = 64u;
override together: u32 = 1u;

// slice_length to divide by: compilers that know it refuse to divide by 0, even where that never runs.
fn divisor() -> u32 {
    return max(slice_length, 1u);
}

// The slices that an invocation takes at a time.
fn slices_at_once() -> u32 {
    if (runs == 0u) {
        return 1u;
    }
    return FANOUT * runs / divisor();
}

// Scans a slice and writes it, unless it has a tiny value and is not to be a left fold; returns whether it did.
fn scan_slice(slice: u32, by_left_fold: bool) -> bool {
    var count = slice_length;
    if (slice_length == 0u) {
        count = params.length;
    }
    let place = place_of(slice);
    var items = load_run(place.input, params.input_axis_stride, count);
    var results = items;
    if (by_left_fold) {
        results = left_fold_run(items);
    } else {
        items = padded_run(items, count);
        results = fold_run(items);
        // The least magnitude is lost where NaN follows it: r is NaN then, too.
        if (product & (has_tiny(reach_of_run(items, results)) | is_exceptional(results[FANOUT - 1u]))) {
            return false;
        }
    }
    var run = results;
    if (params.exclusive == 1u) {
        run = shifted_run(identity(), results);
    }
    store_run(place.output, params.output_axis_stride, count, run);
    return true;
}

// Scans run `n` of those at `place`, and returns its last result.
fn scan_run(n: u32, place: Place, before: Accumulator) -> Accumulator {
    let at = beginnings(divisor(), n * FANOUT % divisor());
    let items = load_run(place.input + n * FANOUT, 1u, FANOUT);
    let results = fold_slices(at, before, items);
    var run = results;
    if (params.exclusive == 1u) {
        run = with_identities(at, shifted_run(before, results));
    }
    store_run(place.output + n * FANOUT, 1u, FANOUT, run);
    return results[15];
}

fn scan_runs(slice: u32) {
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

// Scans what an invocation takes at a time, from this slice on.
fn scan_portion(slice: u32) {
    if (runs == 0u) {
        _ = scan_slice(slice, true);
    } else {
        scan_runs(slice);
    }
}

@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let step = lanes * slices_at_once();
    let begin = workgroup_number(workgroup) * together * step;
    if (begin >= params.count) {
        return;
    }
    let slices = min(params.count - begin, together * step);
    var i = lane * slices_at_once();
    if (together == 1u) {
        if (i < slices) {
            scan_portion(begin + i);
        }
        return;
    }
    if (EXCEPTIONS && product && runs == 0u) {
        for (; i < slices; i += step) {
            if (!scan_slice(begin + i, false)) {
                break;
            }
        }
    }
    for (; i < slices; i += step) {
        scan_portion(begin + i);
    }
}
