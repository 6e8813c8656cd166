// What scan_repair does next, which its first invocation decides. Needs lib/tiles/step.wgsl and lib/tiles/bases.wgsl.

var<workgroup> does: u32;
const ENDS = 0u;
const FINDS = 1u;     // bases from the next tile on
const SCANS = 2u;     // the next tile
const ABSORBS = 3u;   // the rest by class

var<workgroup> next_tile: u32;
// How many tiles to scan one after the other before bases are found again, how many of them were scanned, and how often
// bases may be found yet.
var<workgroup> wait: u32;
var<workgroup> waited: u32;
var<workgroup> finds_left: u32;

// So often in a turn, and once before: finding bases takes longer than a tile.
const MOST_FINDS = 32u;

fn begin_turn(slice: u32) {
    wait = 0u;
    finds_left = MOST_FINDS;
    next_tile = 0u;
    if ((params.lookback & (BEHIND_LOOKBACK | LEAVES_ALL)) == 0u || params.turn_first > 0u) {
        take_up(slice);
    } else if (is_left(slice)) {
        before_tiles = carry_before(slice);
        does = FINDS;
    } else {
        set_state_word(slice_word(slice) + SUSPECT, ALL_WRITTEN);
        does = ENDS;
    }
}

// Goes to the next tile that may be exceptional, if it belongs to the turn. The longer they follow each other, the more
// are scanned before bases are found again.
fn take_up(slice: u32) {
    let suspect = state_word(slice_word(slice) + SUSPECT);
    does = ENDS;
    if (suspect < min(params.tiles, params.turn_first + params.turn_tiles)) {
        wait = select(1u, 2u * wait, suspect == next_tile && wait > 0u);
        waited = 0u;
        next_tile = suspect;
        carry = load_carry(carry_after_word(slice));
        does = select(SCANS, ABSORBS, is_absorbed(carry));
    }
}

// Notes that the tile is written, and goes on behind it.
fn end_tile(slice: u32) {
    set_tile_accumulator(slice, next_tile, TILE_END, carry.last);
    set_state_word(tile_word(slice, next_tile) + TILE_CLASS, IS_WRITTEN);
    next_tile += 1u;
    waited += 1u;
    if (next_tile == params.tiles) {
        end_slice(slice, carry, next_tile);
        does = ENDS;
    } else if (is_absorbed(carry)) {
        does = ABSORBS;
    } else if (waited >= wait && finds_left > 0u) {
        finds_left -= 1u;
        before_tiles = carry;
        does = FINDS;
    } else if (next_tile == params.turn_first + params.turn_tiles) {
        end_slice(slice, carry, next_tile);
        does = ENDS;
    }
}

// Leaves what the next turn, or the next window, goes on from.
fn end_slice(slice: u32, after: Carry, tile: u32) {
    store_carry(carry_after_word(slice), after);
    set_state_word(slice_word(slice) + SUSPECT, tile);
}
