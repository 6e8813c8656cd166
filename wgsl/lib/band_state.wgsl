// What a column of a band has in scratch memory, between its blocks: word by word, the columns side by side.
// Needs lib/carry.wgsl.

#import "lib/state.wgsl"
#import "lib/accumulator_state.wgsl"

// Accumulators, of two words each.
const BEFORE_TILE = 0u;    // the carry's three: s, c and the last result
const PREFIX = 3u;         // what the results of a block begin with
const FINISHED = 4u;       // p, the fold of the tile's finished blocks
const TOTAL = 5u;          // of the block
const LAST = 6u;           // the last result of the block
const ACCUMULATORS = 7u;
// Words behind them.
const SUSPECT = 14u;       // 1 + the first tile that is exceptional, 0 where there is none
const TILES = 15u;         // the carry's tiles and has_s, once that tile is behind
const EXCESS = 16u;        // of the tile so far

fn band_word(column: u32, number: u32) -> u32 {
    return number * params.count + column;
}

fn fetch(column: u32, number: u32) -> Accumulator {
    return get_accumulator(band_word(column, 2u * number), params.count);
}

fn keep(column: u32, number: u32, value: Accumulator) {
    put_accumulator(band_word(column, 2u * number), params.count, value);
}

// A carry's tiles and has_s as a word.
fn carry_tiles(carry: Carry) -> u32 {
    return carry.tiles | select(0u, 0x100u, carry.has_s);
}

fn fetch_carry(column: u32, tiles: u32, has_s: bool) -> Carry {
    return Carry(
        fetch(column, BEFORE_TILE), fetch(column, BEFORE_TILE + 1u), fetch(column, BEFORE_TILE + 2u), tiles, has_s,
    );
}

fn keep_carry(column: u32, carry: Carry) {
    keep(column, BEFORE_TILE, carry.s);
    keep(column, BEFORE_TILE + 1u, carry.c);
    keep(column, BEFORE_TILE + 2u, carry.last);
}
