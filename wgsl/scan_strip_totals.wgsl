// Reduces each tile of floats that are side by side in memory to its total, and to what tells whether it may be
// exceptional: a workgroup a tile of a strip. Of strips of which scan_strip_lookback has left a column; others take no
// time.
//
// For GPUs, where a few columns make too few strips for scan_strips. lib/strips/stretch.wgsl has what a strip is.
// Grid: a workgroup of 256 for each tile of each strip; the strips of a tile follow each other.
// Bindings: 0 params, 1 input, 2 output (not written), 3 state: which columns are left; writes 8 words for each tile
// of a slice, or 12 where an accumulator has two.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, lanes (2, 4 or 8), columns.
// Bytes moved: 4 for each tile of a slice on ordinary data; else each element is read once, and 32 or 48 bytes are
// written for each tile of a slice.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import <element>
#import "lib/order/order.wgsl"
#import "lib/order/exceptional.wgsl"
#import "lib/order/carry.wgsl"
#import "lib/order/run.wgsl"
#import "lib/order/run_reach.wgsl"
#import "lib/order/classes.wgsl"
#import "lib/memory/state.wgsl"
#import "lib/tiles/state.wgsl"
#import <cells>
#import "lib/strips/column.wgsl"
#import "lib/strips/stretch.wgsl"
#import "lib/strips/measures.wgsl"

var<workgroup> left: atomic<u32>;
var<workgroup> is_left_strip: u32;

// Finds out whether any column of the strip is left. All invocations call it.
fn is_wanted(lane: u32, strip: u32) -> bool {
    if (lane == 0u) {
        atomicStore(&left, 0u);
    }
    workgroupBarrier();
    let slice = slice_of(strip, lane % lanes, min(lane / lanes, columns - 1u));
    if (lane < lanes * columns && slice < params.count) {
        atomicOr(&left, u32(is_left(slice)));
    }
    workgroupBarrier();
    if (lane == 0u) {
        is_left_strip = atomicLoad(&left);
    }
    return workgroupUniformLoad(&is_left_strip) == 1u;
}

fn begin_column(slice: u32) -> Column {
    var x: Column;
    x.slice = slice;
    x.carry = fresh_carry();
    return x;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    workgroupBarrier(); // a driver may still be setting workgroup memory to zero
    let strip = workgroup_number(workgroup) % strip_count();
    let tile = workgroup_number(workgroup) / strip_count();
    if (tile >= params.tiles || !is_wanted(lane, strip)) {
        return;
    }
    least = SMALL;
    if (lane < 16u) {
        begin_measures(lane);
    }
    let beside = lane % lanes;
    let first = FANOUT * (lane / lanes); // row of a stretch
    var a = begin_column(slice_of(strip, beside, 0u));
    var b = begin_column(slice_of(strip, beside, 1u));
    let pair = pair_of(strip, a.slice, b.slice);
    let begin = tile * TILE;
    let end = min(begin + TILE, params.length);
    var loaded = load_rows(lane, begin + first, pair);
    var found_a = Measures(0u, 0u, INFINITE, 0u);
    var found_b = found_a;
    var lead_a: Lead;
    var lead_b: Lead;
    var shelf = 0u;
    for (var k = begin; k < end; k += ROWS) {
        let count = rows_there(k, first, end);
        let rows = own_rows(lane, loaded);
        take_rows(rows, count, &a, &b);
        classify_run(first_run(rows), &a, &found_a);
        if (columns > 1u) {
            classify_run(second_run(rows), &b, &found_b);
        }
        if (k + ROWS < end) {
            loaded = load_rows(lane, k + ROWS + first, pair);
        }
        shelf = fold_stretch(shelf, lane, &a, &b);
        lead_a = lead_of_run(shelf, 0u, lane, k, &a);
        measure_run(lead_a, count, &a, &found_a);
        if (columns > 1u) {
            lead_b = lead_of_run(shelf, LANES, lane, k, &b);
            measure_run(lead_b, count, &b, &found_b);
        }
        shelf = 1u - shelf;
    }
    post_measures(beside, found_a);
    if (columns > 1u) {
        post_measures(lanes + beside, found_b);
    }
    workgroupBarrier();
    if (first == ROWS - FANOUT) {
        leave_record(beside, tile, lead_a, &a);
        if (columns > 1u) {
            leave_record(lanes + beside, tile, lead_b, &b);
        }
    }
}
