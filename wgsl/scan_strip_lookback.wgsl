// Scans slices that are side by side in memory, or windows of whole tiles, in one pass: a workgroup takes a part of a
// tile of a strip, a stretch of rows, and looks back for what comes before it, column by column.
//
// For GPUs, where a few columns make too few strips for scan_strips. lib/strips/stretch.wgsl has what a strip is. A
// workgroup posts the totals of its blocks, which depend on its elements alone, before it waits. Then it folds those
// of its tile, of its span and of the spans before, left to right as the canonical order has it. Of integers, whose
// order is free, a part is a tile. Who waits in vain leaves the part to scan_tiles, and of floats the columns, as with
// an exceptional tile, to scan_strip_totals, or to scan_repair where parts are tiles, and what follows; then nobody in
// the strip waits any longer.
//
// Grid: a workgroup of 256 for each part of each strip, in the order of tickets; the strips of a part follow each
// other.
// Bindings: 0 params, 1 input (absent where it lies in the output's binding), 2 output, 3 state, zero where scan_tiles
// clears it.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, lanes (1, 2, 4 or 8), columns, patience;
// withhold_every in tests.
// Bytes moved: one read and one write an element; of rows that begin inside words also a read of a strip's first and
// last word of each; of floats 120 to 2500 bytes for each tile of a slice.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import <element>
#import "lib/order/order.wgsl"
#import "lib/order/exceptional.wgsl"
#import "lib/order/carry.wgsl"
#import "lib/order/run.wgsl"
#import "lib/order/run_reach.wgsl"
#import "lib/memory/state_atomic.wgsl"
#import "lib/tiles/state.wgsl"
#import "lib/lookback/words.wgsl"
#import "lib/lookback/withheld.wgsl"
#import <cells>
#import "lib/strips/column.wgsl"
#import "lib/strips/stretch.wgsl"
#import "lib/strips/posts.wgsl"
#import "lib/strips/whole_tile.wgsl"
#import "lib/strips/part.wgsl"
#import "lib/strips/look_back.wgsl"
#import "lib/strips/spans_before.wgsl"

var<workgroup> drawn: u32;

// Makes a column go on from its base, as if that were one long span.
fn set_base(at: Part, column: u32, x: ptr<function, Column>) {
    (*x).slice = slice_of_column(at.strip, column);
    (*x).carry = fresh_carry();
    (*x).carry.has_s = at.has_s || at.has_c;
    (*x).carry.s = bases[column];
    (*x).p = p_of[column];
}

// Leaves a column with an exceptional result. The invocation that has its last run of the part also posts the last
// result, before any other is waited for, and keeps what the next window begins with if this is the end of one.
fn end_column(at: Part, column: u32, is_keeper: bool, x: ptr<function, Column>) {
    let slice = (*x).slice;
    if (EXCEPTIONS && is_excessive((*x).excess)) {
        leave_column(slice, MAY_BE_WRONG);
    }
    if (!is_keeper || slice >= params.count) {
        return;
    }
    let last = (*x).r[15];
    if (!EXACT && params.exclusive == 1u && is_posting(at, slice)) {
        publish_accumulator(end_record(slice, at.number), last);
    }
    if (params.suspend == 1u && (at.number + 1u) * ROWS >= params.length) {
        var carry = carry_exceptional(last);
        if (!EXACT) {
            let tiles = ((start & 0xffu) + at.tile) % FANOUT;
            carry = carry_on(Carry(s_of[column], c_of[column], last, tiles, at.has_s), (*x).p, last);
        }
        store_cell_carry(slice, carry);
    }
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) lane: u32) {
    workgroupBarrier(); // a driver may still be setting workgroup memory to zero
    if (lane == 0u) {
        drawn = atomicAdd(&state[header_word() + TICKET], 1u);
        forget_missing();
    }
    let ticket = workgroupUniformLoad(&drawn);
    let strip = ticket % strip_count();
    let number = ticket / strip_count();
    let first = FANOUT * (lane / lanes); // row of a part
    let row = number * ROWS + first;
    if (number * ROWS >= params.length) {
        return;
    }
    least = SMALL;
    let at = part_of(strip, number, begin_columns(lane, strip));
    let beside = lane % lanes;
    var a: Column;
    var b: Column;
    let slice = slice_of_column(strip, beside);
    a.slice = slice;
    b.slice = slice_of_column(strip, WIDTH - lanes + beside);
    let pair = pair_of(strip, slice, b.slice);
    let count = select(0u, rows_there(number * ROWS, first, params.length), slice < params.count);
    let rows = own_rows(lane, load_rows(lane, row, pair));
    take_rows(rows, count, &a, &b);
    let shelf = fold_part(lane, at.tile, rows, count, &a, &b);
    if (lane == 0u) {
        delay_withheld(ticket, header_word() + DELAYS);
    }
    var is_found = look_at_blocks(lane, at, shelf);
    if (is_found) {
        is_found = look_at_tiles(lane, at, shelf);
    }
    if (is_found) {
        fold_span(lane, at);
        is_found = find_spans(lane, at);
    }
    if (!is_found) {
        give_up(lane, strip);
        return;
    }
    settle(lane, at);
    set_base(at, beside, &a);
    if (columns > 1u) {
        set_base(at, lanes + beside, &b);
    }
    finish_stretch(shelf, lane, at.within * ROWS, count, &a, &b);
    let is_keeper = first == ROWS - FANOUT;
    end_column(at, beside, is_keeper, &a);
    if (columns > 1u) {
        end_column(at, lanes + beside, is_keeper, &b);
    }
    if (params.exclusive == 1u) {
        if (!find_last(lane, at)) {
            give_up(lane, strip);
            return;
        }
        a.before = last_of[beside];
        b.before = last_of[WIDTH - lanes + beside];
    }
    _ = write_stretch(shelf, lane, row, count, pair, &a, &b);
    if (EXACT && lane < WIDTH) {
        let written = slice_of_column(strip, lane);
        if (written < params.count) {
            mark_cell(written, at.tile, IS_WRITTEN);
        }
    }
}
