// Scans each tile of slices that are side by side in memory, from what scan_carries says that it begins with: a
// workgroup a tile of a strip.
//
// For GPUs, where a few columns make too few strips for scan_strips. lib/strips/shape.wgsl has what a strip is.
// Tiles from the first one on that may be exceptional are written like others, and marked as not written:
// scan_repair and scan_tiles write them again.
// Grid: a workgroup of 256 for each tile of each strip; the strips of a tile follow each other.
// Bindings: 0 params, 1 input (absent in place, for integers), 2 output, 3 state: what scan_carries left; of floats it
// marks the tiles that are written.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, lanes (4, 8 or 16), columns.
// Bytes moved: one read and one write an element; of rows that begin inside words also a read of a strip's first and
// last word of each; up to 28 bytes are read and written for each tile of a slice.

#import "lib/params.wgsl"
#import "lib/strips/shape.wgsl"
#import <input>
#import <output>
#import <element>
#import "lib/order/order.wgsl"
#import "lib/order/exceptional.wgsl"
#import "lib/order/carry.wgsl"
#import "lib/order/run.wgsl"
#import "lib/order/run_reach.wgsl"
#import "lib/memory/state.wgsl"
#import "lib/tiles/state.wgsl"
#import <cells>
#import "lib/strips/cell_parts.wgsl"
#import "lib/strips/rows.wgsl"
#import "lib/strips/column.wgsl"
#import "lib/strips/stretch.wgsl"

// A column before a tile, which goes on from its base as if that were one long span.
fn begin_column(slice: u32, tile: u32) -> Column {
    var x: Column;
    x.slice = slice;
    x.carry = fresh_carry();
    if (slice < params.count && (tile > 0u || params.resume == 1u)) {
        let word = tile_word(slice, tile);
        let apart = params.tiles * TILE_WORDS;
        x.carry.has_s = true;
        x.carry.s = get_parts(slice, word + TILE_BASE, apart);
        if (params.exclusive == 1u && tile > 0u) {
            x.carry.last = get_parts(slice, word - TILE_WORDS + TILE_END, apart);
        } else if (params.exclusive == 1u) {
            x.carry.last = get_parts(slice, carry_before_word(slice) + 4u, SLICE_WORDS);
        }
    }
    x.before = x.carry.last;
    return x;
}

fn mark_written(slice: u32, tile: u32) {
    if (slice < params.count && tile < state_word(slice_word(slice) + SUSPECT)) {
        let word = tile_word(slice, tile) + TILE_CLASS;
        set_state_word(word, state_word(word) | IS_WRITTEN);
    }
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let strip = workgroup_number(workgroup) % strip_count();
    let tile = workgroup_number(workgroup) / strip_count();
    if (tile >= params.tiles) {
        return;
    }
    let beside = lane % lanes;
    let first = FANOUT * (lane / lanes); // row of a stretch
    var a = begin_column(slice_of(strip, beside, 0u), tile);
    var b = a;
    if (columns > 1u) {
        b = begin_column(slice_of(strip, beside, 1u), tile);
    }
    let pair = pair_of(a.slice, b.slice);
    let begin = tile * TILE;
    let end = min(begin + TILE, params.length);
    var rows = load_rows(begin + first, pair.place.input, pair.apart.input);
    var shelf = 0u;
    for (var k = begin; k < end; k += ROWS) {
        let count = select(0u, rows_there(k, first, end), a.slice < params.count);
        take_rows(rows, count, &a, &b);
        if (k + ROWS < end) {
            rows = load_rows(k + ROWS + first, pair.place.input, pair.apart.input);
        }
        shelf = fold_stretch(shelf, lane, &a, &b);
        shelf = write_stretch(shelf, lane, params.first + k, k + first, count, pair, &a, &b);
    }
    if (EXCEPTIONS && lane < lanes) {
        mark_written(a.slice, tile);
        if (columns > 1u) {
            mark_written(b.slice, tile);
        }
    }
}
