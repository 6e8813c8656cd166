// Scans slices of at most 256 elements that follow each other in memory without gaps. A slice is a single block, and a
// workgroup takes as many as its invocations have runs for.
//
// For GPUs. Neighbours read and write neighbouring vectors of 16 bytes, which go through workgroup memory, <stage>.
// An invocation has a run of a slice, or, of slices of at most 16 elements, as many as are a run in all.
// Of decreasing scans it is turned around on the way: the last slice comes first, its last element in front. Uniforms
// are those of an increasing one.
// Grid: workgroups of `lanes` invocations.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state (unused). What a workgroup takes begins and ends at
// multiples of 16 bytes.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, lanes, single, decreasing.
// Bytes moved: each element is read once and written once.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import <element>
#import "lib/order/order.wgsl"
#import "lib/order/exceptional.wgsl"
#import "lib/order/run.wgsl"
#import "lib/order/run_reach.wgsl"
#import "lib/order/run_slices.wgsl"
#import "lib/order/two_steps.wgsl"
#import "lib/memory/input_bits.wgsl"
#import <stage>
#import "lib/memory/fetch_quads.wgsl"
#import "lib/memory/ordered_vectors.wgsl"
#import "lib/order/left_fold.wgsl"

// Whether slices have at most 16 elements: they are left folds, and need no others' totals.
override single: bool = false;

// Two shelves with a place for each invocation: one can be filled while the other is read.
const PLACES = 512u / WORDS;
var<workgroup> shelves: array<Accumulator, PLACES>;
// 1 for slices with an exceptional result.
var<workgroup> exceptional: array<atomic<u32>, 128>;

// The slices of a workgroup, which have whole vectors together.
fn slices_together() -> u32 {
    if (single) {
        return lanes * (FANOUT / params.length);
    }
    let bits = params.length << input_log2_bits;
    let whole = 128u / min(bits & (~bits + 1u), 128u);
    return lanes / ((params.length + FANOUT - 1u) / FANOUT) / whole * whole;
}

// Slices of at most 16 elements, of which the workgroup has `slices`.
fn scan_single_runs(lane: u32, slices: u32) {
    let together = FANOUT / params.length;
    let first = lane * together;
    let count = min(slices - min(first, slices), together) * params.length;
    let at = beginnings(params.length, 0u);
    let place = first * params.length;
    let results = fold_slices(at, identity(), load_run(place, 1u, count));
    var run = results;
    if (params.exclusive == 1u) {
        run = with_identities(at, shifted_run(identity(), results));
    }
    store_run(place, 1u, count, run);
}

// Longer slices.
fn scan_runs(lane: u32, slices: u32) {
    least = SMALL;
    let runs = (params.length + FANOUT - 1u) / FANOUT;
    let slice = lane / runs;
    let j = lane % runs;
    let begin = slice * params.length;
    let count = select(0u, min(params.length - j * FANOUT, FANOUT), slice < slices);
    var items = load_run(begin + j * FANOUT, 1u, count);
    if (product && EXCEPTIONS) {
        items = padded_run(items, count);
    }
    let r = fold_run(items);
    var h = r[15];
    var shelf = 0u;
    for (var stride = 1u; stride < runs; stride <<= 2u) {
        shelves[shelf + lane] = h;
        workgroupBarrier();
        let near = shelves[shelf + lane - min(j, stride)];
        let far = shelves[shelf + lane - min(j, 2u * stride)];
        h = two_steps(j, stride, h, near, far, shelves[shelf + lane - min(j, 3u * stride)]);
        shelf = lanes - shelf;
    }
    shelves[shelf + lane] = h;
    workgroupBarrier();
    let q = shelves[shelf + lane - min(j, 1u)];
    let results = results_of_run(j > 0u, q, r);
    if (is_excessive(select(0u, excess_of_step(items, r, results, count, j > 0u, q), count > 0u))) {
        atomicStore(&exceptional[slice], 1u);
    }
    shelves[lanes - shelf + lane] = results[15];
    workgroupBarrier();
    if (!EXCEPTIONS || atomicLoad(&exceptional[slice]) == 0u) {
        var run = results;
        if (params.exclusive == 1u) {
            run = shifted_run(select(shelves[lanes - shelf + lane - min(j, 1u)], identity(), j == 0u), results);
        }
        store_run(begin + j * FANOUT, 1u, count, run);
    } else if (j == 0u) {
        _ = write_left_fold(false, identity(), begin, begin, params.length);
    }
}

@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let together = slices_together();
    let first = workgroup_number(workgroup) * together;
    if (first >= params.count) {
        return;
    }
    let slices = min(params.count - first, together);
    let vectors = ((slices * params.length) << input_log2_bits) >> 7u;
    let place = place_of(first);
    let input = place.input >> (7u - input_log2_bits);
    let output = place.output >> (7u - output_log2_bits);
    load_vectors(lane, input, vectors);
    atomicStore(&exceptional[lane % 128u], 0u);
    workgroupBarrier();
    if (single) {
        scan_single_runs(lane, slices);
    } else {
        scan_runs(lane, slices);
    }
    workgroupBarrier();
    store_vectors(lane, output, vectors);
}
