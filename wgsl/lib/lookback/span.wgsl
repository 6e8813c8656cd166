// How a workgroup of scan_lookback learns of the tiles of its span. Needs lib/lookback/tile.wgsl.

// What the window begins with.
var<workgroup> start: Carry;
// p, h and r of the last result before the tile.
var<workgroup> last_before: array<Accumulator, 3>;
// LOOKS until everything is found.
var<workgroup> looking: u32;

const LOOKS = 0u;
const HAS_FOUND = 1u;
const GIVES_UP = 2u;

// Reads an accumulator that another workgroup posts, or notes that it is missing.
fn wait_for(word: u32) -> Accumulator {
    var found = read_accumulator(word);
    for (var look = 0u; look < patience && found.written == 0u; look += 1u) {
        found = read_accumulator(word);
    }
    if (found.written == 0u) {
        note_missing();
    }
    return found.value;
}

// Reads the totals of the span's tiles before this one, by an invocation each, and what the last of them ended with.
fn look_at_tiles(lane: u32, at: Position) {
    if (lane < at.before) {
        let word = tile_record(at.slice, at.tile - at.before + lane);
        var total = read_total(word);
        for (var look = 0u; look < patience && !total.written; look += 1u) {
            total = read_total(word);
        }
        totals[lane] = total.value;
        bounds[lane] = total.bounds;
        if (!total.written) {
            note_missing();
        }
    }
    let part = lane - FANOUT;
    if (has_ends() && at.before > 0u && lane >= FANOUT && part < 3u) {
        last_before[part] = wait_for(tile_record(at.slice, at.tile - 1u) + LAST_RESULT + part * HALVES);
    }
}

// Folds the totals of the span's tiles, and posts the span's if this is its last tile. By the first invocation.
fn fold_span(at: Position) {
    var c = start.c;
    var has_c = at.has_c;
    var of_span = Bounds(-BEYOND, BEYOND);
    for (var i = 0u; i <= at.before; i += 1u) {
        folds[i] = c;
        if (EXCEPTIONS) {
            of_span = both_bounds(of_span, bounds_in_span(has_c, c, bounds[i]));
        }
        c = append(has_c, c, totals[i]);
        has_c = true;
    }
    looking = select(LOOKS, GIVES_UP, is_missing());
    forget_missing();
    totals[at.before] = c;
    if (at.is_last && looking == LOOKS && !is_withheld(ticket_of(at))) {
        publish_total(span_record(at.slice, at.span), c, of_span);
    }
}
