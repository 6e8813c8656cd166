// Scratch memory of the tile kernels. First, for each slice, what goes from window to window and from pass to pass;
// then, for each tile, what one pass leaves for the next. Needs lib/memory/state.wgsl or lib/memory/state_atomic.wgsl.

#import "lib/order/carry_state.wgsl"

const SLICE_WORDS = 16u;
// Two carries take turns, at word 0 and word 8: one of before the window, one of after it. Each has a spare word:
// The first tile of the window that may be exceptional and that scan_repair has not seen to. NO_TILE if there was none;
// the number of tiles if it has seen to all.
const SUSPECT = 7u;
const ABSORBED = 15u;      // the first tile of the window whose elements count by class only
const NO_TILE = 0xffffffffu;
const ALL_WRITTEN = 0xfffffffeu; // no tile of the slice is left

fn slice_word(slice: u32) -> u32 {
    return slice * SLICE_WORDS;
}

// The place of the carry before the window, and of the one after it.
fn carry_before_word(slice: u32) -> u32 {
    return slice_word(slice) + select(0u, 8u, params.carry_side == 1u);
}

fn carry_after_word(slice: u32) -> u32 {
    return slice_word(slice) + select(8u, 0u, params.carry_side == 1u);
}

fn carry_before(slice: u32) -> Carry {
    if (params.resume == 1u) {
        return load_carry(carry_before_word(slice));
    }
    return fresh_carry();
}

// The words of a tile. The first pass leaves its total; the p, h and r that make its last result; the largest
// magnitude of a result without what comes before the tile, and of r; its class; and for a product the smallest
// magnitude of such a result. lib/tiles/bases.wgsl adds base, which the results begin with, and end, the last result.
const TILE_WORDS = 6u * WORDS + 4u;
const TILE_TOTAL = 0u;
const TILE_P = WORDS;
const TILE_H = 2u * WORDS;
const TILE_R = 3u * WORDS;
const TILE_BASE = 4u * WORDS;
const TILE_END = 5u * WORDS;
const TILE_LARGEST = 6u * WORDS;
const TILE_LARGEST_R = TILE_LARGEST + 1u;
const TILE_CLASS = TILE_LARGEST + 2u;
const TILE_SMALLEST = TILE_LARGEST + 3u;
// Beside the class, or in its place: scan_lookback, scan_strip_lookback or scan_repair has written the tile.
const IS_WRITTEN = 16u;

fn tile_word(slice: u32, tile: u32) -> u32 {
    return params.count * SLICE_WORDS + (slice * params.tiles + tile) * TILE_WORDS;
}

fn is_tile_written(slice: u32, tile: u32) -> bool {
    return (state_word(tile_word(slice, tile) + TILE_CLASS) & IS_WRITTEN) != 0u;
}

fn tile_accumulator(slice: u32, tile: u32, number: u32) -> Accumulator {
    return get_accumulator(tile_word(slice, tile) + number, 1u);
}

fn set_tile_accumulator(slice: u32, tile: u32, number: u32, value: Accumulator) {
    put_accumulator(tile_word(slice, tile) + number, 1u, value);
}

// Behind all tiles there is what scan_lookback or scan_strip_lookback hands from workgroup to workgroup, if it is one
// of the passes: all zero before it, and again behind scan_tiles. A header, then a word for each slice, which
// scan_lookback lacks of integers:
const HEADER_WORDS = 2u;
// Bits of params.lookback; 8 matters to planning alone.
const BEHIND_LOOKBACK = 1u;
const BEFORE_LOOKBACK = 2u;
const OF_STRIPS = 4u;
const LEAVES_ALL = 16u; // nobody waits, nothing is handed on, and all tiles are left

fn header_word() -> u32 {
    return params.count * (SLICE_WORDS + params.tiles * TILE_WORDS);
}

// Of floats not 0 if tiles of the slice are left: of scan_lookback, NO_TILE less the first.
fn left_word(slice: u32) -> u32 {
    return header_word() + HEADER_WORDS + slice;
}

fn is_left(slice: u32) -> bool {
    return (params.lookback & LEAVES_ALL) != 0u || state_word(left_word(slice)) != 0u;
}
