// A stretch of rows in a strip: how the 256 invocations of a workgroup share it, and what one does with its runs of
// both columns. Needs <cells> and lib/strips/column.wgsl.

// Invocations beside each other; those below each have the next run.
override lanes: u32 = 16u;
// Columns of an invocation: 1 or 2; of the integers of a word as one.
override columns: u32 = 1u;
const LANES = 256u;
// Of a stretch: its blocks, and its rows.
override BLOCKS: u32 = 16u / lanes;
override ROWS: u32 = 256u * BLOCKS;

// Where an invocation's columns begin: the first, and how far from it the second is, if there is one.
struct Pair {
    place: Place,
    apart: Place,
    has_other: bool,
}

// Of columns with these slices. Those that are not there read what others do.
fn pair_of(strip: u32, first: u32, second: u32) -> Pair {
    let there = slice_to_read(strip, first);
    let place = place_of(there);
    let other = place_of(other_slice(there, second));
    return Pair(place, Place(other.input - place.input, other.output - place.output), second < params.count);
}

// How many rows an invocation has of the stretch from row `k` on, of `length` rows in all, where it has the rows from
// number `first` on.
fn rows_there(k: u32, first: u32, length: u32) -> u32 {
    return min(length - min(k + first, length), FANOUT);
}

fn take_rows(rows: Rows, count: u32, a: ptr<function, Column>, b: ptr<function, Column>) {
    take_run(first_run(rows), count, a);
    if (columns > 1u) {
        take_run(second_run(rows), count, b);
    }
}

fn put_on_shelf(shelf: u32, lane: u32, a: Accumulator, b: Accumulator) {
    shelves[shelf][lane] = a;
    if (columns > 1u) {
        shelves[shelf][LANES + lane] = b;
    }
    workgroupBarrier();
}

// Makes h of all runs' totals, by Hillis-Steele inside each block, and leaves them on the shelf whose number it
// returns.
fn fold_stretch(shelf: u32, lane: u32, a: ptr<function, Column>, b: ptr<function, Column>) -> u32 {
    let j = lane / lanes % FANOUT;
    var full = shelf;
    for (var stride = 1u; stride < FANOUT; stride <<= 2u) {
        put_on_shelf(full, lane, (*a).h, (*b).h);
        (*a).h = take_steps(full, lane, j, stride, (*a).h);
        if (columns > 1u) {
            (*b).h = take_steps(full, LANES + lane, j, stride, (*b).h);
        }
        full = 1u - full;
    }
    put_on_shelf(full, lane, (*a).h, (*b).h);
    return full;
}

// Makes the results of a stretch, whose h are on the shelf. It begins with element `i` of the slices; the invocation
// has `count` of its rows.
fn finish_stretch(
    shelf: u32, lane: u32, i: u32, count: u32, a: ptr<function, Column>, b: ptr<function, Column>,
) {
    finish_run(shelf, 0u, lane, i, count, a);
    if (columns > 1u) {
        finish_run(shelf, LANES, lane, i, count, b);
    }
}

// Writes these results, of the window's rows from number `row` on. Returns the shelf that is free.
fn write_stretch(
    shelf: u32, lane: u32, row: u32, count: u32, pair: Pair, a: ptr<function, Column>, b: ptr<function, Column>,
) -> u32 {
    let free = 1u - shelf;
    if (params.exclusive == 0u) {
        store_rows(lane, row, (*a).slice, pair, count, (*a).r, (*b).r);
        return free;
    }
    put_on_shelf(free, lane, (*a).r[15], (*b).r[15]);
    let before_a = before_run(free, 0u, lane, a);
    var before_b = before_a;
    if (columns > 1u) {
        before_b = before_run(free, LANES, lane, b);
    }
    let results_a = shifted_run(before_a, (*a).r);
    let results_b = shifted_run(before_b, (*b).r);
    store_rows(lane, row, (*a).slice, pair, count, results_a, results_b);
    return shelf;
}
