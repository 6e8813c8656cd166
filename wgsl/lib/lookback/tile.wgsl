// What a workgroup of scan_lookback does before it waits for others: it measures its tile, and posts its total.
// Needs lib/lookback/records.wgsl, lib/lookback/withheld.wgsl, lib/order/classes.wgsl and <tile>.

var<workgroup> largest: atomic<u32>;
var<workgroup> largest_r: atomic<u32>;
var<workgroup> smallest: atomic<u32>;
var<workgroup> class_or: atomic<u32>;
var<workgroup> class_xor: atomic<u32>;
// Of the tiles of the span up to this one: totals, what each goes on from inside the span, and bounds.
var<workgroup> totals: array<Accumulator, 16>;
var<workgroup> folds: array<Accumulator, 16>;
var<workgroup> bounds: array<Bounds, 16>;
// p, h and r of the tile's last result.
var<workgroup> own_last: array<Accumulator, 3>;

// A tile's place among those of its slice.
struct Position {
    slice: u32,
    tile: u32,         // of the window
    span: u32,         // of the window, whose first may have begun before it
    before: u32,       // tiles of the span before this one, in the window
    is_last: bool,     // of the span
    has_c: bool,       // the span has tiles before the window
}

fn position_of(slice: u32, tile: u32, tiles_before: u32) -> Position {
    let number = tiles_before + tile;
    let before = select(number % FANOUT, tile, number < FANOUT);
    let has_c = number < FANOUT && tiles_before > 0u;
    return Position(slice, tile, number / FANOUT, before, number % FANOUT == FANOUT - 1u, has_c);
}

fn ticket_of(at: Position) -> u32 {
    return at.tile * params.count + at.slice;
}

fn begin_measures() {
    atomicStore(&largest, 0u);
    atomicStore(&largest_r, 0u);
    atomicStore(&smallest, INFINITE);
    atomicStore(&class_or, 0u);
    atomicStore(&class_xor, 0u);
}

// Finds out how large the values of the tile at `input` are, and its class, which sums have only where an element is
// not finite.
fn measure_tile(lane: u32, input: u32, count: u32) {
    let members = min(count - min(lane * LANE_ELEMENTS, count), LANE_ELEMENTS);
    if (product) {
        _ = finish_tile(lane, false, identity(), count);
        let is_there = members > 0u;
        atomicMax(&largest_r, select(0u, magnitude(of_size(reached.largest)), is_there));
        atomicMax(&largest, select(0u, largest_of_extent(extremes), is_there));
        atomicMin(&smallest, select(INFINITE, extremes.smallest, is_there));
    } else {
        atomicMax(&largest_r, excess_of_run(results, members));
    }
    workgroupBarrier();
    if (product || atomicLoad(&largest_r) >= INFINITE) {
        // Of whole tiles: nothing comes behind the last one, which alone may have fewer elements. Sums, which get here
        // seldom, read theirs again: kept until here, they would take 16 registers.
        var elements = taken;
        if (!product) {
            let first = input + min(lane * LANE_ELEMENTS, count - 1u) * params.input_axis_stride;
            elements = load_run(first, params.input_axis_stride, max(members, 1u));
        }
        let class_word = class_bits_of_run(elements);
        atomicOr(&class_or, class_word);
        atomicXor(&class_xor, class_word & IS_NEGATIVE);
    }
    if (!product && lane == 0u) {
        atomicStore(&largest, largest_of_sum(atomicLoad(&largest_r)));
    }
    workgroupBarrier();
}

// Posts what others need of the tile, and keeps what the passes behind need if it is left. By the last invocation.
fn post_tile(at: Position, r: Accumulator) {
    let p = fold_blocks(LANES - 1u).first;
    let h = shelves[0][LANES - 2u];
    let total = link(p, shelves[0][LANES - 1u]);
    var of_tile = Bounds(0, 0);
    let word = tile_word(at.slice, at.tile);
    if (EXCEPTIONS) {
        of_tile = bounds_of_tile(atomicLoad(&largest), atomicLoad(&largest_r), atomicLoad(&smallest));
    }
    totals[at.before] = total;
    bounds[at.before] = of_tile;
    own_last = array<Accumulator, 3>(p, h, r);
    if (patience > 0u && !is_withheld(ticket_of(at))) {
        let record = tile_record(at.slice, at.tile);
        publish_total(record, total, of_tile);
        if (has_ends()) {
            publish_accumulator(record + LAST_RESULT, p);
            publish_accumulator(record + LAST_RESULT + HALVES, h);
            publish_accumulator(record + LAST_RESULT + 2u * HALVES, r);
        }
    }
    set_tile_accumulator(at.slice, at.tile, TILE_TOTAL, total);
    if (EXCEPTIONS) {
        set_tile_accumulator(at.slice, at.tile, TILE_P, p);
        set_tile_accumulator(at.slice, at.tile, TILE_H, h);
        set_tile_accumulator(at.slice, at.tile, TILE_R, r);
        set_state_word(word + TILE_LARGEST, atomicLoad(&largest));
        set_state_word(word + TILE_LARGEST_R, atomicLoad(&largest_r));
        set_state_word(word + TILE_SMALLEST, atomicLoad(&smallest));
    }
    set_state_word(word + TILE_CLASS, (atomicLoad(&class_or) & ~IS_NEGATIVE) | atomicLoad(&class_xor));
}
