// Rows of cells that no two invocations share, in a strip. Needs <cells>, <output> and lib/strips/stretch.wgsl.

#import "lib/strips/rows.wgsl"

const SHELF = 512u;

fn strip_count() -> u32 {
    return (params.count - 1u) / (lanes * columns * slices_of_cell) + 1u;
}

// How many slices the cell has, combined as they lie in a word, that begins with this one.
fn parts_of(first: u32) -> u32 {
    return slices_of_cell;
}

// The slice whose place load_cells is told besides the first: that of the second cell, if there is one.
fn other_slice(first: u32, second: u32) -> u32 {
    return select(first, min(second, params.count - slices_of_cell), columns > 1u);
}

// Stores the first `count` members of runs, from row number `row` of the window on.
fn store_rows(lane: u32, row: u32, slice: u32, pair: Pair, count: u32, a: Run, b: Run) {
    let stride = params.output_axis_stride;
    let place = pair.place.output + row * stride;
    let apart = pair.apart.output;
    let both = pair.has_other;
    if (0u < count) {
        store_row(place + 0u * stride, apart, both, a[0], b[0]);
    }
    if (1u < count) {
        store_row(place + 1u * stride, apart, both, a[1], b[1]);
    }
    if (2u < count) {
        store_row(place + 2u * stride, apart, both, a[2], b[2]);
    }
    if (3u < count) {
        store_row(place + 3u * stride, apart, both, a[3], b[3]);
    }
    if (4u < count) {
        store_row(place + 4u * stride, apart, both, a[4], b[4]);
    }
    if (5u < count) {
        store_row(place + 5u * stride, apart, both, a[5], b[5]);
    }
    if (6u < count) {
        store_row(place + 6u * stride, apart, both, a[6], b[6]);
    }
    if (7u < count) {
        store_row(place + 7u * stride, apart, both, a[7], b[7]);
    }
    if (8u < count) {
        store_row(place + 8u * stride, apart, both, a[8], b[8]);
    }
    if (9u < count) {
        store_row(place + 9u * stride, apart, both, a[9], b[9]);
    }
    if (10u < count) {
        store_row(place + 10u * stride, apart, both, a[10], b[10]);
    }
    if (11u < count) {
        store_row(place + 11u * stride, apart, both, a[11], b[11]);
    }
    if (12u < count) {
        store_row(place + 12u * stride, apart, both, a[12], b[12]);
    }
    if (13u < count) {
        store_row(place + 13u * stride, apart, both, a[13], b[13]);
    }
    if (14u < count) {
        store_row(place + 14u * stride, apart, both, a[14], b[14]);
    }
    if (15u < count) {
        store_row(place + 15u * stride, apart, both, a[15], b[15]);
    }
}

fn store_row(place: u32, apart: u32, both: bool, a: Accumulator, b: Accumulator) {
    store_cells(place, place + apart, both, a, b);
}
