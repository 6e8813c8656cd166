// What scan_bands and scan_strips leave of each column in scratch memory, for scan_slices and for the next window:
// word by word, the columns side by side. Needs lib/order/carry.wgsl.

#import "lib/memory/state.wgsl"
#import "lib/memory/accumulators.wgsl"

const SUSPECT = 0u;        // 1 + the first tile that is exceptional, 0 where there is none
const FLAGS = 1u;          // the carry's, once that tile is behind
// Accumulators, of two words each.
const BEFORE_TILE = 0u;    // the carry's three: s, c and the last result

fn column_word(column: u32, number: u32) -> u32 {
    return number * params.count + column;
}

fn fetch(column: u32, number: u32) -> Accumulator {
    return get_accumulator(column_word(column, 2u * number + 2u), params.count);
}

fn keep(column: u32, number: u32, value: Accumulator) {
    put_accumulator(column_word(column, 2u * number + 2u), params.count, value);
}

fn fetch_carry(column: u32, flags: u32) -> Carry {
    return carry_of(
        fetch(column, BEFORE_TILE), fetch(column, BEFORE_TILE + 1u), fetch(column, BEFORE_TILE + 2u), flags,
    );
}

fn keep_carry(column: u32, carry: Carry) {
    keep(column, BEFORE_TILE, carry.s);
    keep(column, BEFORE_TILE + 1u, carry.c);
    keep(column, BEFORE_TILE + 2u, carry.last);
}

// The same with its flags, where it does not go by the column's place how many they are.
fn keep_suspect_carry(column: u32, carry: Carry) {
    keep_carry(column, carry);
    set_state_word(column_word(column, FLAGS), carry_flags(carry));
}
