// Scans slices that are side by side in memory, or windows of whole tiles: a workgroup walks down a strip of columns.
//
// For GPUs. Of a stretch of rows, an invocation has a run of 16 in registers, of one or two columns (slot <cells>):
// neighbours read neighbouring words, each row is read once, a stretch ahead, and written once. An exceptional tile is
// written like others; its column is left to scan_slices from there on.
// Grid: a workgroup of 256 for each strip: `lanes` invocations beside each other, and the others below them.
// Bindings: 0 params, 1 input (absent where it lies in the output's binding), 2 output, 3 state: of floats a word a
// column; 8 a column where there is more than a tile or a window.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, lanes (1, 2, 4, 8 or 16), columns.
// Bytes moved: one read and one write an element; of rows that begin inside words also a read of a strip's first and
// last word of each.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import <element>
#import "lib/order/order.wgsl"
#import "lib/order/exceptional.wgsl"
#import "lib/order/carry.wgsl"
#import "lib/order/run.wgsl"
#import "lib/order/run_reach.wgsl"
#import "lib/slices/suspects.wgsl"
#import <cells>
#import "lib/strips/column.wgsl"
#import "lib/strips/stretch.wgsl"

// Of each column 1 + the first tile that is exceptional.
var<workgroup> suspects: array<atomic<u32>, 32>;
const NO_SUSPECT = 0xffffffffu;

fn begin_column(slice: u32) -> Column {
    var x: Column;
    x.slice = slice;
    x.carry = fresh_carry();
    if (params.first > 0u) {
        let flags = select(flags_before(params.first >> TILE_SHIFT), HAS_S, EXACT);
        x.carry = fetch_carry(min(slice, params.count - 1u), flags);
    }
    x.before = x.carry.last;
    return x;
}

fn begin_suspect(suspect: u32, slice: u32) {
    var known = 0u;
    if (EXCEPTIONS && params.first > 0u) {
        known = state_word(column_word(min(slice, params.count - 1u), SUSPECT));
    }
    atomicStore(&suspects[suspect], select(known, NO_SUSPECT, known == 0u));
}

// Says whether the tile is exceptional, which all runs do before a barrier.
fn suspect_tile(suspect: u32, tile: u32, x: ptr<function, Column>) {
    if (is_excessive((*x).excess)) {
        atomicMin(&suspects[suspect], tile + 1u);
    }
}

// Goes on to the next tile. `is_keeper`: the invocation has the tile's last run.
fn close_tile(suspect: u32, tile: u32, is_keeper: bool, x: ptr<function, Column>) {
    if (EXCEPTIONS && is_keeper && tile > 0u && (*x).slice < params.count) {
        if (atomicLoad(&suspects[suspect]) == tile + 1u) {
            keep_suspect_carry((*x).slice, (*x).carry);
        }
    }
    (*x).carry = carry_on((*x).carry, (*x).p, (*x).r[15]);
    (*x).excess = 0u;
}

fn end_column(suspect: u32, x: ptr<function, Column>) {
    if ((*x).slice >= params.count) {
        return;
    }
    let found = atomicLoad(&suspects[suspect]);
    if (EXCEPTIONS) {
        set_state_word(column_word((*x).slice, SUSPECT), select(found, 0u, found == NO_SUSPECT));
    }
    if (EXACT) {
        (*x).carry = carry_exceptional((*x).carry.last);  // a new span, wherever the window ends
    }
    if (params.suspend == 1u && (!EXCEPTIONS || found == NO_SUSPECT)) {
        keep_carry((*x).slice, (*x).carry);
    }
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    workgroupBarrier(); // a driver may still be setting workgroup memory to zero
    let strip = workgroup_number(workgroup);
    if (slice_of(strip, 0u, 0u) >= params.count) {
        return;
    }
    least = SMALL;
    let beside = lane % lanes;
    let first = FANOUT * (lane / lanes); // row of a stretch
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
    let pair = pair_of(strip, a.slice, b.slice);
    var loaded = load_rows(lane, first, pair);
    storageBarrier(); // all have read their carries, which keepers replace
    var shelf = 0u;
    for (var k = 0u; k < params.length; k += ROWS) {
        let count = select(0u, rows_there(k, first, params.length), a.slice < params.count);
        take_rows(own_rows(lane, loaded), count, &a, &b);
        if (k + ROWS < params.length) {
            loaded = load_rows(lane, k + ROWS + first, pair);
        }
        shelf = fold_stretch(shelf, lane, &a, &b);
        let i = select(params.first, 0u, EXACT) + k;
        finish_stretch(shelf, lane, i, count, &a, &b);
        shelf = write_stretch(shelf, lane, k + first, count, pair, &a, &b);
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
