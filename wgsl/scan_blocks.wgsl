// Scans slices of a tile or less that follow each other in memory without gaps. A workgroup takes as many as its
// invocations have runs for.
//
// For GPUs. Neighbours read and write neighbours, vectors of 16 bytes or elements (<units>), which go through workgroup
// memory (<stage>).
// An invocation has a run of a slice, or, of slices of at most 16 elements, as many as are a run in all.
// Of decreasing scans it is turned around on the way: the last slice comes first, its last element in front. Uniforms
// are those of an increasing one.
// Grid: workgroups of `lanes` invocations.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state (unused). What a workgroup takes begins and ends at
// units.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, lanes, single, several, decreasing.
// Bytes moved: each element is read once and written once, exceptional slices too.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import <element>
#import "lib/order/order.wgsl"
#import "lib/order/exceptional.wgsl"
#import "lib/order/run.wgsl"
#import "lib/order/run_reach.wgsl"
#import "lib/order/run_slices.wgsl"
#import <stage>
#import <units>
#import "lib/order/left_fold.wgsl"

// Whether slices have at most 16 elements: they are left folds, and need no others' totals.
override single: bool = false;
// Whether they have more than 256, and so p.
override several: bool = false;

// Two shelves with a place for each invocation: one can be filled while the other is read.
const PLACES = 512u / WORDS;
var<workgroup> shelves: array<Accumulator, PLACES>;
// 1 for slices with an exceptional result.
var<workgroup> exceptional: array<atomic<u32>, 128>;

#import "lib/slices/left_runs.wgsl"

// p: the fold of the totals of a slice's blocks before block `number`, which is not the first. What it was on the way
// others check. `first` is the place of the slice's first run.
fn fold_blocks(first: u32, number: u32) -> Accumulator {
    var p = shelves[first + FANOUT - 1u];
    for (var block = 1u; block < number; block += 1u) {
        p = combine(p, shelves[first + block * FANOUT + FANOUT - 1u]);
    }
    return checked(p);
}

// Longer slices.
fn scan_runs(lane: u32, slices: u32) {
    least = SMALL;
    let runs = (params.length + FANOUT - 1u) / FANOUT;
    let slice = lane / runs;
    let number = lane % runs;
    let j = number % FANOUT;
    let place = slice * params.length + number * FANOUT;
    let count = select(0u, min(params.length - number * FANOUT, FANOUT), slice < slices);
    var items = load_run(place, 1u, count);
    if (product && EXCEPTIONS) {
        items = padded_run(items, count);
    }
    let r = fold_run(items);
    var h = r[15];
    var shelf = 0u;
    for (var stride = 1u; stride < min(runs, FANOUT); stride <<= 2u) {
        shelves[shelf + lane] = h;
        workgroupBarrier();
        let near = shelves[shelf + lane - min(j, stride)];
        let far = shelves[shelf + lane - min(j, 2u * stride)];
        h = two_steps(j, stride, h, near, far, shelves[shelf + lane - min(j, 3u * stride)]);
        shelf = lanes - shelf;
    }
    shelves[shelf + lane] = h;
    workgroupBarrier();
    var q = shelves[shelf + lane - min(j, 1u)];
    if (several && number >= FANOUT) {
        let p = fold_blocks(shelf + lane - number, number / FANOUT);
        q = select(link(p, q), p, j == 0u);
    }
    let results = results_of_run(number > 0u, q, r);
    if (is_excessive(select(0u, excess_of_step(items, r, results, count, number > 0u, q), count > 0u))) {
        atomicStore(&exceptional[slice], 1u);
    }
    let ends = lanes - shelf;
    shelves[ends + lane] = results[15];
    workgroupBarrier();
    let is_left = EXCEPTIONS && count > 0u && atomicLoad(&exceptional[slice]) == 1u;
    if (!is_left) {
        var run = results;
        if (params.exclusive == 1u) {
            run = shifted_run(select(shelves[ends + lane - min(number, 1u)], identity(), number == 0u), results);
        }
        store_run(place, 1u, count, run);
    }
    if (EXCEPTIONS && !several && is_left && number == 0u) {
        _ = write_left_fold(false, identity(), place, place, params.length);
    }
    if (EXCEPTIONS && several) {
        store_left(is_left, slice, number, shelf + lane - number, place, count);
    }
}

@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    workgroupBarrier(); // a driver may still be setting workgroup memory to zero
    let of_run = FANOUT / params.length;
    let together = select(slices_together(params.length), lanes * of_run, single);
    let first = workgroup_number(workgroup) * together;
    if (first >= params.count) {
        return;
    }
    let slices = min(params.count - first, together);
    let units = units_of(slices * params.length, input_log2_bits);
    let place = place_of(first);
    load_units(lane, units_of(place.input, input_log2_bits), units);
    atomicStore(&exceptional[lane % 128u], 0u);
    workgroupBarrier();
    if (single) {
        let mine = min(lane * of_run, slices);
        scan_slices_of_run(mine * params.length, min(slices - mine, of_run) * params.length);
    } else {
        scan_runs(lane, slices);
    }
    workgroupBarrier();
    store_units(lane, units_of(place.output, output_log2_bits), units);
}
