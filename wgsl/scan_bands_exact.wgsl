// Scans columns of integers, or windows of them: vectors of four words at eight places an invocation, row by row.
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
#import "lib/integer_words.wgsl"
#import "lib/state.wgsl"

// Vectors of an invocation: 4 or 8.
override vectors: u32 = 8u;
// Columns of a vector.
override columns: u32 = 128u >> output_log2_bits;
override BAND: u32 = 8u * columns * vectors;

// Rows that a workgroup takes of a band at a time.
const BLOCK = 256u;

// A vector on its way down.
struct Fall {
    place: Place,
    there: bool,
    r: vec4<u32>,
}

fn state_quad(column: u32) -> u32 {
    return column / columns * 4u;
}

fn begin_fall(k: u32, column: u32) -> Fall {
    let there = column < params.count;
    let nearest = min(column, params.count - columns);
    var place = place_of(nearest);
    place.input += k * params.input_axis_stride;
    place.output += k * params.output_axis_stride;
    var r = identity_words();
    if (params.first + k > 0u) {
        let word = state_quad(nearest);
        r = vec4<u32>(state_word(word), state_word(word + 1u), state_word(word + 2u), state_word(word + 3u));
    }
    return Fall(place, there, r);
}

fn take_row(row: u32, x: ptr<function, Fall>) {
    let before = (*x).r;
    let place = (*x).place.input + row * params.input_axis_stride;
    (*x).r = combine_words(before, input_unit(place >> (7u - input_log2_bits)));
    if ((*x).there) {
        let target_place = (*x).place.output + row * params.output_axis_stride;
        set_output_unit(target_place >> (7u - output_log2_bits), select((*x).r, before, params.exclusive == 1u));
    }
}

fn end_fall(column: u32, x: ptr<function, Fall>) {
    if ((*x).there) {
        let word = state_quad(column);
        set_state_word(word, (*x).r.x);
        set_state_word(word + 1u, (*x).r.y);
        set_state_word(word + 2u, (*x).r.z);
        set_state_word(word + 3u, (*x).r.w);
    }
}

fn scan_block(k: u32, count: u32, column: u32) {
    let next = 8u * columns;
    var x0 = begin_fall(k, column + 0u * next);
    var x1 = begin_fall(k, column + 1u * next);
    var x2 = begin_fall(k, column + 2u * next);
    var x3 = begin_fall(k, column + 3u * next);
    var x4 = x0;
    var x5 = x0;
    var x6 = x0;
    var x7 = x0;
    if (vectors > 4u) {
        x4 = begin_fall(k, column + 4u * next);
        x5 = begin_fall(k, column + 5u * next);
        x6 = begin_fall(k, column + 6u * next);
        x7 = begin_fall(k, column + 7u * next);
    }
    for (var row = 0u; row < count; row += 1u) {
        take_row(row, &x0);
        take_row(row, &x1);
        take_row(row, &x2);
        take_row(row, &x3);
        if (vectors > 4u) {
            take_row(row, &x4);
            take_row(row, &x5);
            take_row(row, &x6);
            take_row(row, &x7);
        }
    }
    end_fall(column + 0u * next, &x0);
    end_fall(column + 1u * next, &x1);
    end_fall(column + 2u * next, &x2);
    end_fall(column + 3u * next, &x3);
    if (vectors > 4u) {
        end_fall(column + 4u * next, &x4);
        end_fall(column + 5u * next, &x5);
        end_fall(column + 6u * next, &x6);
        end_fall(column + 7u * next, &x7);
    }
}

@compute @workgroup_size(8)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let bands = (params.count + BAND - 1u) / BAND;
    let share = (bands - 1u) / params.grid_width + 1u;
    let first = workgroup_number(workgroup) * share;
    let end = min(first + share, bands);
    for (var k = 0u; k < params.length; k += BLOCK) {
        for (var band = first; band < end; band += 1u) {
            scan_block(k, min(BLOCK, params.length - k), band * BAND + lane * columns);
        }
    }
}
