// The records in which the workgroups of a chain hand carries on. Each is written once and can be read at any time.
// Needs lib/state_atomic.wgsl.

#import "lib/carry_state.wgsl"
#import "lib/marked_words.wgsl"

const TICKET = 0u;
const DELAYS = 1u;
const HEADER_WORDS = 8u;
const RECORD_WORDS = 6u * WORDS + 1u;

// The place of a slice's carry between windows. There are two, which windows read and write in turn: when the last
// tile of a window hands its carry on, the first tile may not have read its own yet, if others worked out the carry
// it owed them.
fn carry_word(slice: u32, side: u32) -> u32 {
    return HEADER_WORDS + (side * params.count + slice) * CARRY_WORDS;
}

fn record_word(ticket: u32) -> u32 {
    return HEADER_WORDS + 2u * params.count * CARRY_WORDS + ticket * RECORD_WORDS;
}

fn publish(ticket: u32, carry: Carry) {
    let word = record_word(ticket);
    publish_accumulator(word, carry.s);
    publish_accumulator(word + 2u * WORDS, carry.c);
    publish_accumulator(word + 4u * WORDS, carry.last);
    set_state_word(word + 6u * WORDS, (carry.tiles << 16u) | select(0u, 0x1000000u, carry.has_s) | WRITTEN);
}

// What a record holds so far.
struct Reading {
    carry: Carry,
    complete: bool,
}

fn read_record(ticket: u32) -> Reading {
    let word = record_word(ticket);
    let s = read_accumulator(word);
    let c = read_accumulator(word + 2u * WORDS);
    let last = read_accumulator(word + 4u * WORDS);
    let rest = state_word(word + 6u * WORDS);
    let written = s.written & c.written & last.written & rest;
    let carry = Carry(s.value, c.value, last.value, (rest >> 16u) & 0xffu, (rest & 0x1000000u) != 0u);
    return Reading(carry, (written & WRITTEN) == WRITTEN);
}
