// A block of the columns of one invocation in a band: `vectors` times four adjacent ones.
// Needs lib/four.wgsl, lib/band_state.wgsl and <fours>.

// Fours of an invocation: 4 or 8.
override vectors: u32 = 8u;
// Whether results leave their own elements out. A constant: keeping the result before takes time.
override exclusive: bool = false;

const BLOCK = 256u;
override BAND: u32 = 32u * vectors;

struct Columns {
    place: Place,
    there: bool,
    r: Four,                      // fold of the current run
    q: Four,                      // what the current run's results begin with, but in the slice's first
    prefix: Four,                 // the same of the block
    last: Four,                   // the last results
    excess: vec4<u32>,            // the largest of the results
    levels: array<Four, 15>,      // as in lib/progress.wgsl
}

fn begin_columns(k: u32, column: u32) -> Columns {
    var x: Columns;
    x.there = column < params.count;
    let there = min(column, params.count - 4u);
    x.place = place_of(there);
    x.place.input += k * params.input_axis_stride;
    x.place.output += k * params.output_axis_stride;
    x.prefix = four_of(identity());
    x.last = x.prefix;
    if (params.first + k > 0u) {
        x.prefix = fetch_four(there, PREFIX);
        x.last = fetch_four(there, LAST);
    }
    x.q = x.prefix;
    if ((params.first + k) % TILE > 0u) {
        x.excess = fetch_excess(there);
    }
    return x;
}

// Takes in the next row of a run. `joined`: it goes on from r. `has_q`: results begin with q.
fn take_row(row: u32, joined: bool, has_q: bool, x: ptr<function, Columns>) {
    let item = load_four((*x).place.input + row * params.input_axis_stride);
    (*x).r = select_four(item, combine_four((*x).r, item), joined);
    let result = select_four((*x).r, combine_four((*x).q, (*x).r), has_q);
    (*x).excess = max((*x).excess, max(excess_of_made_four(item, (*x).r), excess_of_four(result)));
    if ((*x).there) {
        let place = (*x).place.output + row * params.output_axis_stride;
        if (exclusive) {
            store_four(place, (*x).last);
        } else {
            store_four(place, result);
        }
    }
    if (exclusive) {
        (*x).last = result;
    }
}

// Takes in a run that is number `member` of its block. `goes_on`: the block's results begin with its prefix.
fn close_columns(member: u32, has_q: bool, goes_on: bool, x: ptr<function, Columns>) {
    (*x).last = select_four((*x).r, combine_four((*x).q, (*x).r), has_q);
    let w = (*x).levels;
    let h1 = append_four(member >= 1u, w[0], (*x).r);
    let h2 = append_four(member >= 2u, w[2], h1);
    let h4 = append_four(member >= 4u, w[6], h2);
    let h = append_four(member >= 8u, w[14], h4);
    (*x).levels = array<Four, 15>(
        (*x).r, h1, w[1], h2, w[3], w[4], w[5], h4, w[7], w[8], w[9], w[10], w[11], w[12], w[13],
    );
    (*x).q = append_four(goes_on, (*x).prefix, h);
    (*x).r = h; // of the last run, the block's total
}

fn end_columns(column: u32, x: ptr<function, Columns>) {
    if ((*x).there) {
        keep_four(column, TOTAL, (*x).r);
        keep_four(column, LAST, (*x).last);
        keep_excess(column, (*x).excess);
    }
}

fn fetch_four(column: u32, number: u32) -> Four {
    return Four(
        fetch(column, number), fetch(column + 1u, number), fetch(column + 2u, number), fetch(column + 3u, number),
    );
}

fn keep_four(column: u32, number: u32, x: Four) {
    keep(column, number, x.a);
    keep(column + 1u, number, x.b);
    keep(column + 2u, number, x.c);
    keep(column + 3u, number, x.d);
}

fn fetch_excess(column: u32) -> vec4<u32> {
    let word = column_word(column, EXCESS);
    return vec4<u32>(state_word(word), state_word(word + 1u), state_word(word + 2u), state_word(word + 3u));
}

fn keep_excess(column: u32, excess: vec4<u32>) {
    let word = column_word(column, EXCESS);
    set_state_word(word, excess.x);
    set_state_word(word + 1u, excess.y);
    set_state_word(word + 2u, excess.z);
    set_state_word(word + 3u, excess.w);
}
