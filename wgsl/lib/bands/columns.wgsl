// A block of the columns of one invocation in a band: `vectors` times four adjacent ones.
// Needs lib/bands/four.wgsl and <fours>.

#import "lib/slices/suspects.wgsl"

// In scratch memory between blocks, behind what lib/slices/suspects.wgsl has. Accumulators:
const PREFIX = 3u;         // what the results of a block begin with
const FINISHED = 4u;       // p, the fold of the tile's finished blocks
const TOTAL = 5u;          // of the block
const LAST = 6u;           // the last result of the block
// A word.
const EXCESS = 16u;        // of the tile so far

// Fours of an invocation: 1, 2, 4 or 8.
override vectors: u32 = 8u;
// Whether results leave their own elements out. A constant: keeping the result before takes time.
override exclusive: bool = false;

const BLOCK = 256u;
const in_group = 4u;
override BAND: u32 = 8u * vectors;

struct Columns {
    place: Place,
    there: u32,                   // columns
    r: Four,                      // fold of the current run
    q: Four,                      // what the current run's results begin with, but in the slice's first
    prefix: Four,                 // the same of the block
    last: Four,                   // the last results
    excess: vec4<u32>,            // the largest of the results
    levels: array<Four, 15>,      // as in lib/slices/progress.wgsl
}

fn begin_columns(k: u32, number: u32) -> Columns {
    var x: Columns;
    let groups = group_count();
    let group = group_at(min(number, groups - 1u));
    x.there = select(0u, group.count, number < groups);
    x.place = place_of(group.first);
    x.place.input += k * params.input_axis_stride;
    x.place.output += k * params.output_axis_stride;
    x.prefix = four_of(identity());
    x.last = x.prefix;
    if (params.first + k > 0u) {
        x.prefix = fetch_four(group, PREFIX);
        x.last = fetch_four(group, LAST);
    }
    x.q = x.prefix;
    if ((params.first + k) % TILE > 0u) {
        x.excess = fetch_excess(group);
    }
    return x;
}

// Takes in the next row of a run. `joined`: it goes on from r. `has_q`: results begin with q.
fn take_row(row: u32, joined: bool, has_q: bool, x: ptr<function, Columns>) {
    let item = load_four((*x).place.input + row * params.input_axis_stride, (*x).there);
    (*x).r = select_four(item, combine_four((*x).r, item), joined);
    let result = select_four((*x).r, combine_four((*x).q, (*x).r), has_q);
    (*x).excess = max((*x).excess, max(excess_of_made_four(item, (*x).r), excess_of_four(result)));
    let place = (*x).place.output + row * params.output_axis_stride;
    if (exclusive) {
        store_four(place, (*x).there, (*x).last);
        (*x).last = result;
    } else {
        store_four(place, (*x).there, result);
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

fn end_columns(number: u32, x: ptr<function, Columns>) {
    if ((*x).there > 0u) {
        let group = group_at(number);
        keep_four(group, TOTAL, (*x).r);
        keep_four(group, LAST, (*x).last);
        keep_excess(group, (*x).excess);
    }
}

// Column `j` of a group; its last one where it has fewer.
fn column_of(group: Group, j: u32) -> u32 {
    return group.first + min(j, group.count - 1u);
}

fn fetch_four(group: Group, number: u32) -> Four {
    return Four(
        fetch(group.first, number),
        fetch(column_of(group, 1u), number),
        fetch(column_of(group, 2u), number),
        fetch(column_of(group, 3u), number),
    );
}

fn keep_four(group: Group, number: u32, x: Four) {
    keep(group.first, number, x.a);
    if (group.count > 1u) {
        keep(group.first + 1u, number, x.b);
    }
    if (group.count > 2u) {
        keep(group.first + 2u, number, x.c);
    }
    if (group.count > 3u) {
        keep(group.first + 3u, number, x.d);
    }
}

fn fetch_excess(group: Group) -> vec4<u32> {
    return vec4<u32>(
        state_word(column_word(group.first, EXCESS)),
        state_word(column_word(column_of(group, 1u), EXCESS)),
        state_word(column_word(column_of(group, 2u), EXCESS)),
        state_word(column_word(column_of(group, 3u), EXCESS)),
    );
}

fn keep_excess(group: Group, excess: vec4<u32>) {
    let word = column_word(group.first, EXCESS);
    set_state_word(word, excess.x);
    if (group.count > 1u) {
        set_state_word(word + 1u, excess.y);
    }
    if (group.count > 2u) {
        set_state_word(word + 2u, excess.z);
    }
    if (group.count > 3u) {
        set_state_word(word + 3u, excess.w);
    }
}
