// Scans slices that are side by side in memory, or windows of whole tiles: a workgroup walks down a strip of columns.
//
// For GPUs. Of a stretch of rows, an invocation has a run of 16 in registers, of one or two columns (slot <cells>):
// neighbours read neighbouring words, each row is read once, a stretch ahead, and written once. An exceptional tile is
// written like others; its column is left to scan_suspects from there on.
// Grid: a workgroup of 256 for each strip: `lanes` invocations beside each other, and the others below them.
// Bindings: 0 params, 1 input (absent in place, for integers), 2 output, 3 state: of floats a word a column; 8 a column
// where there is more than a tile or a window.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, lanes (4, 8 or 16), columns.
// Bytes moved: one read and one write an element; of rows that begin inside words also a read of a strip's first and
// last word of each.

// Invocations beside each other; those below each have the next run.
override lanes: u32 = 16u;
// Columns of an invocation: 1 or 2; of the integers of a word as one.
override columns: u32 = 1u;
const LANES = 256u;
// Of a stretch: its blocks, and its rows.
override BLOCKS: u32 = 16u / lanes;
override ROWS: u32 = 256u * BLOCKS;

#import "lib/params.wgsl"
#import <input>
#import <output>
#import <element>
#import "lib/order.wgsl"
#import "lib/exceptional.wgsl"
#import "lib/carry.wgsl"
#import "lib/run.wgsl"
#import "lib/run_reach.wgsl"
#import "lib/suspects.wgsl"
#import <cells>
#import "lib/strip_rows.wgsl"
#import "lib/strip_column.wgsl"

fn put_on_shelf(shelf: u32, lane: u32, a: Accumulator, b: Accumulator) {
    shelves[shelf][lane] = a;
    if (columns > 1u) {
        shelves[shelf][LANES + lane] = b;
    }
    workgroupBarrier();
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let strip = workgroup_number(workgroup);
    if (slice_of(strip, 0u, 0u) >= params.count) {
        return;
    }
    least = SMALL;
    let beside = lane % lanes;
    let first = FANOUT * (lane / lanes); // row of a stretch
    let j = lane / lanes % FANOUT;
    let is_keeper = first == ROWS - FANOUT;
    var a = begin_column(slice_of(strip, beside, 0u));
    var b = a;
    if (columns > 1u) {
        b = begin_column(slice_of(strip, beside, 1u));
    }
    if (lane < lanes) {
        begin_suspect(beside, a.slice);
        if (columns > 1u) {
            begin_suspect(lanes + beside, b.slice);
        }
    }
    let place = place_of(min(a.slice, params.count - slices_of_cell));
    let other = place_of(other_slice(min(a.slice, params.count - slices_of_cell), b.slice));
    let has_other = b.slice < params.count;
    var rows = load_rows(first, place.input, other.input - place.input);
    var shelf = 0u;
    for (var k = 0u; k < params.length; k += ROWS) {
        let count = select(0u, min(params.length - min(k + first, params.length), FANOUT), a.slice < params.count);
        take_run(first_run(rows), count, &a);
        if (columns > 1u) {
            take_run(second_run(rows), count, &b);
        }
        if (k + ROWS < params.length) {
            rows = load_rows(k + ROWS + first, place.input, other.input - place.input);
        }
        for (var stride = 1u; stride < FANOUT; stride <<= 2u) {
            put_on_shelf(shelf, lane, a.h, b.h);
            a.h = take_steps(shelf, lane, j, stride, a.h);
            if (columns > 1u) {
                b.h = take_steps(shelf, LANES + lane, j, stride, b.h);
            }
            shelf = 1u - shelf;
        }
        put_on_shelf(shelf, lane, a.h, b.h);
        let i = params.first + k;
        finish_run(shelf, 0u, lane, i, count, &a);
        if (columns > 1u) {
            finish_run(shelf, LANES, lane, i, count, &b);
        }
        shelf = 1u - shelf;
        let output = place.output + (k + first) * params.output_axis_stride;
        let apart = other.output - place.output;
        if (params.exclusive == 0u) {
            store_rows(lane, a.slice, output, apart, count, has_other, a.r, b.r);
        } else {
            put_on_shelf(shelf, lane, a.r[15], b.r[15]);
            let before_a = before_run(shelf, 0u, lane, &a);
            var before_b = before_a;
            if (columns > 1u) {
                before_b = before_run(shelf, LANES, lane, &b);
            }
            shelf = 1u - shelf;
            let results_a = shifted_run(before_a, a.r);
            let results_b = shifted_run(before_b, b.r);
            store_rows(lane, a.slice, output, apart, count, has_other, results_a, results_b);
        }
        if ((i + ROWS) % TILE == 0u || k + ROWS >= params.length) {
            let tile = i >> TILE_SHIFT;
            if (EXCEPTIONS) {
                suspect_tile(beside, tile, &a);
                if (columns > 1u) {
                    suspect_tile(lanes + beside, tile, &b);
                }
                workgroupBarrier();
            }
            close_tile(beside, tile, is_keeper, &a);
            if (columns > 1u) {
                close_tile(lanes + beside, tile, is_keeper, &b);
            }
        }
    }
    if (is_keeper) {
        end_column(beside, &a);
        if (columns > 1u) {
            end_column(lanes + beside, &b);
        }
    }
}
