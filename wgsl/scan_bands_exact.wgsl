// Scans columns of integers, or windows of them: vectors of four words at up to eight places an invocation, row by row.
// A row's last vector may have fewer columns.
//
// As scan_bands, but sums and products of integers have the same bits in any order, so that columns are left folds, and
// those of 8 and 16 bits are combined as they lie, several in a word.
// Grid: workgroups of 8 invocations; the bands are shared out evenly.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state: four words a vector of a row.
// Constants: product, input_log2_bits, output_log2_bits, flat, vectors.
// Bytes moved: one read and one write an element; the state once a block.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/arithmetic/integer_words.wgsl"
#import <vector>
#import "lib/memory/state.wgsl"
#import "lib/bands/groups.wgsl"

// Vectors of an invocation: 1, 2, 4 or 8.
override vectors: u32 = 8u;
override BAND: u32 = 8u * vectors;
// Columns of a vector.
override in_group: u32 = 128u >> output_log2_bits;

// Rows that a workgroup takes of a band at a time.
const BLOCK = 256u;

// A vector on its way down.
struct Fall {
    place: Place,
    there: u32,                   // columns
    r: vec4<u32>,
}

fn begin_fall(k: u32, number: u32) -> Fall {
    let groups = group_count();
    let nearest = min(number, groups - 1u);
    let group = group_at(nearest);
    var place = place_of(group.first);
    place.input += k * params.input_axis_stride;
    place.output += k * params.output_axis_stride;
    var r = identity_words();
    if (params.first + k > 0u) {
        let word = 4u * nearest;
        r = vec4<u32>(state_word(word), state_word(word + 1u), state_word(word + 2u), state_word(word + 3u));
    }
    return Fall(place, select(0u, group.count, number < groups), r);
}

fn take_row(row: u32, x: ptr<function, Fall>) {
    let before = (*x).r;
    let there = (*x).there;
    (*x).r = combine_words(before, load_vector((*x).place.input + row * params.input_axis_stride, there));
    let target_place = (*x).place.output + row * params.output_axis_stride;
    store_vector(target_place, there, select((*x).r, before, params.exclusive == 1u));
}

fn end_fall(number: u32, x: ptr<function, Fall>) {
    if ((*x).there > 0u) {
        let word = 4u * number;
        set_state_word(word, (*x).r.x);
        set_state_word(word + 1u, (*x).r.y);
        set_state_word(word + 2u, (*x).r.z);
        set_state_word(word + 3u, (*x).r.w);
    }
}

fn scan_block(k: u32, count: u32, number: u32) {
    var x0 = begin_fall(k, number);
    var x1 = x0;
    var x2 = x0;
    var x3 = x0;
    var x4 = x0;
    var x5 = x0;
    var x6 = x0;
    var x7 = x0;
    if (vectors > 1u) {
        x1 = begin_fall(k, number + 8u);
    }
    if (vectors > 2u) {
        x2 = begin_fall(k, number + 16u);
        x3 = begin_fall(k, number + 24u);
    }
    if (vectors > 4u) {
        x4 = begin_fall(k, number + 32u);
        x5 = begin_fall(k, number + 40u);
        x6 = begin_fall(k, number + 48u);
        x7 = begin_fall(k, number + 56u);
    }
    for (var row = 0u; row < count; row += 1u) {
        take_row(row, &x0);
        if (vectors > 1u) {
            take_row(row, &x1);
        }
        if (vectors > 2u) {
            take_row(row, &x2);
            take_row(row, &x3);
        }
        if (vectors > 4u) {
            take_row(row, &x4);
            take_row(row, &x5);
            take_row(row, &x6);
            take_row(row, &x7);
        }
    }
    end_fall(number, &x0);
    if (vectors > 1u) {
        end_fall(number + 8u, &x1);
    }
    if (vectors > 2u) {
        end_fall(number + 16u, &x2);
        end_fall(number + 24u, &x3);
    }
    if (vectors > 4u) {
        end_fall(number + 32u, &x4);
        end_fall(number + 40u, &x5);
        end_fall(number + 48u, &x6);
        end_fall(number + 56u, &x7);
    }
}

@compute @workgroup_size(8)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let bands = (group_count() - 1u) / BAND + 1u;
    let share = (bands - 1u) / params.grid_width + 1u;
    let first = workgroup_number(workgroup) * share;
    let end = min(first + share, bands);
    for (var k = 0u; k < params.length; k += BLOCK) {
        for (var band = first; band < end; band += 1u) {
            scan_block(k, min(BLOCK, params.length - k), band * BAND + lane);
        }
    }
}
