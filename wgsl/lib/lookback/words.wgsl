// Words that workgroups hand to each other behind what lib/tiles/state.wgsl has, all 0 before: how a value is posted,
// so that another sees all of it or that something is missing, and how long one waits for it. Needs
// lib/tiles/state.wgsl.

// WGSL's atomics order nothing but themselves. So every word of a value carries 16 bits and a mark that says that this
// word was written; the words are 0 before.

const WRITTEN = 1u;

fn publish_halves(word: u32, value: u32) {
    set_state_word(word, (value << 16u) | WRITTEN);
    set_state_word(word + 1u, (value & 0xffff0000u) | WRITTEN);
}

// Takes 2 * WORDS words.
fn publish_accumulator(word: u32, value: Accumulator) {
    let words = to_words(value);
    publish_halves(word, words.x);
    if (WORDS == 2u) {
        publish_halves(word + 2u, words.y);
    }
}

// The value so far, and WRITTEN if that is all of it.
fn read_halves(word: u32) -> vec2<u32> {
    let low = state_word(word);
    let high = state_word(word + 1u);
    return vec2<u32>((high & 0xffff0000u) | (low >> 16u), low & high & WRITTEN);
}

struct AccumulatorReading {
    value: Accumulator,
    written: u32,
}

fn read_accumulator(word: u32) -> AccumulatorReading {
    let first = read_halves(word);
    var second = vec2<u32>(0u, WRITTEN);
    if (WORDS == 2u) {
        second = read_halves(word + 2u);
    }
    return AccumulatorReading(of_words(vec2<u32>(first.x, second.x)), first.y & second.y);
}

// Words of the header.
const TICKET = 0u;
const DELAYS = 1u;

// Words of an accumulator in halves.
const HALVES = 2u * WORDS;

// As many spans as the tiles of a window can lie in.
fn spans_of_slice() -> u32 {
    return (params.tiles + 2u * FANOUT - 2u) / FANOUT;
}

// A workgroup waits for so many looks, and then it gives up: no GPU promises that the others ever run.

// How many times to look for what others post before the tile, or part of one, is left. At 0
// scan_lookback does not look at all.
override patience: u32 = 4000u;

// Whether anything was not there at the last look.
var<workgroup> missing: atomic<u32>;

fn note_missing() {
    atomicStore(&missing, 1u);
}

fn forget_missing() {
    atomicStore(&missing, 0u);
}

fn is_missing() -> bool {
    return atomicLoad(&missing) == 1u;
}
