// What the workgroups of scan_lookback hand to each other, behind what lib/tiles/state.wgsl has: for each tile its
// total and bounds and, where results are exclusive, what its last result is made of; for each span its total and
// bounds, and the fold of all spans up to its end. Needs lib/tiles/state.wgsl and lib/order/bounds.wgsl.

#import "lib/lookback/words.wgsl"

// Of a tile: its total; if it is of floats, its bounds, and p, h and r of its last result.
const TOTAL = 0u;
const BOUNDS = HALVES;
const LAST_RESULT = HALVES + 2u;
// Of a span: the same two, then the fold, whether all of its tiles and those before are safe, and the last result.
const PREFIX = HALVES + 2u;
const PREFIX_FLAGS = 2u * HALVES + 2u;
const SPAN_END = 2u * HALVES + 3u;
const IS_SAFE = 2u;

// Whether the last result before a tile matters, and has to be made of its parts.
fn has_ends() -> bool {
    return !EXACT && params.exclusive == 1u;
}

fn tile_record(slice: u32, tile: u32) -> u32 {
    let words = select(LAST_RESULT + select(0u, 3u * HALVES, has_ends()), HALVES, EXACT);
    return left_word(select(params.count, 0u, EXACT)) + (slice * params.tiles + tile) * words;
}

fn span_record(slice: u32, span: u32) -> u32 {
    let words = SPAN_END + select(0u, HALVES, has_ends());
    return tile_record(params.count, 0u) + (slice * spans_of_slice() + span) * words;
}

// A total of a tile or a span, with bounds.
struct Total {
    value: Accumulator,
    bounds: Bounds,
    written: bool,
}

fn publish_total(word: u32, value: Accumulator, bounds: Bounds) {
    publish_accumulator(word + TOTAL, value);
    if (!EXACT) {
        let high = u32(clamp(bounds.high, -BEYOND, BEYOND) + BEYOND);
        let low = u32(clamp(bounds.low, -BEYOND, BEYOND) + BEYOND);
        publish_halves(word + BOUNDS, (high << 16u) | low);
    }
}

fn read_total(word: u32) -> Total {
    let total = read_accumulator(word + TOTAL);
    if (EXACT) {
        return Total(total.value, Bounds(0, 0), total.written == WRITTEN);
    }
    let halves = read_halves(word + BOUNDS);
    let bounds = Bounds(i32(halves.x >> 16u) - BEYOND, i32(halves.x & 0xffffu) - BEYOND);
    return Total(total.value, bounds, (total.written & halves.y) == WRITTEN);
}
