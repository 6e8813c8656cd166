// The part of a strip that a workgroup of scan_strip_lookback takes, a stretch of rows, and what the window begins
// with. Needs <cells>, lib/strips/stretch.wgsl, lib/memory/state_atomic.wgsl, lib/memory/accumulators.wgsl and
// lib/tiles/state.wgsl.

// Columns of a strip.
override WIDTH: u32 = lanes * columns;

// Of each column: the folds of the spans, of the span's tiles and of the tile's blocks before the part, and the last
// result.
var<workgroup> s_of: array<Accumulator, 16>;
var<workgroup> c_of: array<Accumulator, 16>;
var<workgroup> p_of: array<Accumulator, 16>;
var<workgroup> last_of: array<Accumulator, 16>;
// The flags of the carry that the first column has before the window.
var<workgroup> start: u32;
const FLAGS = 6u; // word of a carry

struct Part {
    strip: u32,
    number: u32,            // of the window
    within: u32,            // parts of its tile before it
    tile: u32,              // of the window
    span: u32,              // of the window, whose first may have begun before it
    before: u32,            // tiles of the span before this one, in the window
    is_last: bool,          // of its tile
    is_last_tile: bool,     // its tile, of the span
    continues: bool,        // the span has tiles before the window
    has_c: bool,            // the span has tiles before this one
    has_s: bool,            // there are spans before
}

fn part_of(strip: u32, number: u32, begin: u32) -> Part {
    let parts = select(FANOUT / BLOCKS, 1u, EXACT); // of a tile
    let tile = number / parts;
    let tiles = (begin & 0xffu) + tile; // of the window's first span on
    let before = select(tiles % FANOUT, tile, tiles < FANOUT);
    let has_s = tiles >= FANOUT || (begin & HAS_S) != 0u;
    return Part(
        strip, number, number % parts, tile, tiles / FANOUT, before, (number + 1u) % parts == 0u,
        tiles % FANOUT == FANOUT - 1u, tiles % FANOUT > before, tiles % FANOUT > 0u, has_s,
    );
}

fn slice_of_column(strip: u32, column: u32) -> u32 {
    return slice_of(strip, column % lanes, column / lanes);
}

// Why a column is left: its results may be wrong, as floats can be; or a part of the strip has given up.
const MAY_BE_WRONG = 1u;
const GIVEN_UP = 2u;

fn leave_column(slice: u32, why: u32) {
    if (slice < params.count) {
        atomicMax(&state[left_word(slice)], why);
    }
}

fn bits_of_part(part: u32) -> u32 {
    return part << output_log2_bits;
}

// Stores the accumulators of a cell's slices, the first at `word`, the others `apart` words from each other. A cell of
// integers that are combined as they lie has those of a word; bits above an integer's own are without meaning there, as
// sums and products carry none down.
fn put_parts(slice: u32, word: u32, apart: u32, value: Accumulator) {
    put_accumulator(word, 1u, value);
    for (var part = 1u; part < parts_of(slice); part += 1u) {
        set_state_word(word + part * apart, to_words(value).x >> bits_of_part(part));
    }
}

// The same of what they begin with.
fn get_parts(slice: u32, word: u32) -> Accumulator {
    var words = to_words(get_accumulator(word, 1u));
    for (var part = 1u; part < parts_of(slice); part += 1u) {
        let above = 0xffffffffu << bits_of_part(part);
        words.x = (words.x & ~above) | (state_word(word + part * SLICE_WORDS) << bits_of_part(part));
    }
    return of_words(words);
}

// Reads what the window begins with, by an invocation for each column. Returns `start`. All invocations call it.
fn begin_columns(lane: u32, strip: u32) -> u32 {
    let slice = slice_of_column(strip, lane % WIDTH);
    var carry = fresh_carry();
    if (params.resume == 1u && lane < WIDTH && slice < params.count) {
        let word = carry_before_word(slice);
        carry = carry_of(
            get_parts(slice, word), get_parts(slice, word + 2u), get_parts(slice, word + 4u), state_word(word + FLAGS),
        );
    }
    if (EXACT) {
        // The order is free, so that all that comes before counts as spans. It is the last result, whatever flags the
        // slices of a cell have.
        carry = Carry(carry.last, identity(), carry.last, 0u, params.resume == 1u);
    }
    let flags = carry_flags(carry);
    if (lane == 0u) {
        start = flags;
    }
    let begin = workgroupUniformLoad(&start);
    if (EXCEPTIONS && begin != flags && lane < WIDTH) {
        leave_column(slice, MAY_BE_WRONG); // its spans begin elsewhere: a tile before the window was exceptional
    }
    if (lane < WIDTH) {
        s_of[lane] = carry.s;
        c_of[lane] = carry.c;
        p_of[lane] = identity();
        last_of[lane] = carry.last;
    }
    return begin;
}

// Keeps what the next window begins with.
fn store_cell_carry(slice: u32, carry: Carry) {
    let word = carry_after_word(slice);
    put_parts(slice, word, SLICE_WORDS, carry.s);
    put_parts(slice, word + 2u, SLICE_WORDS, carry.c);
    put_parts(slice, word + 4u, SLICE_WORDS, carry.last);
    for (var part = 0u; part < parts_of(slice); part += 1u) {
        set_state_word(word + part * SLICE_WORDS + FLAGS, carry_flags(carry));
    }
}
