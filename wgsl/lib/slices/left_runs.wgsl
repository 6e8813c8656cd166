// Exceptional slices that are in workgroup memory, of more than 16 runs, each with an invocation. Needs <stage>,
// lib/order/left_fold.wgsl and an array `shelves` with a place for each run.

// How many runs of each slice are a left fold: of those behind only classes count.
var<workgroup> left: array<u32, 16>;

fn class_at(place: u32) -> Accumulator {
    return class_of(decode(bits_left(place)));
}

// Stores run `number` of a slice if that is to be a left fold: the first invocation all runs up to the one behind which
// only classes count, each other one its own behind these. Element by element, from workgroup memory, so that what is
// rare takes few registers. `shelf` is where the slice's runs begin on the shelf that is free.
fn store_left(is_left: bool, slice: u32, number: u32, shelf: u32, place: u32, count: u32) {
    if (is_left) {
        var total = class_at(place);
        for (var m = 1u; m < count; m += 1u) {
            total = combine(total, class_at(place + m));
        }
        shelves[shelf + number] = total;
    }
    workgroupBarrier();
    if (is_left && number == 0u) {
        let done = left_fold_up_to(true, false, identity(), place, place, params.length);
        left[slice] = (done.count + FANOUT - 1u) / FANOUT;
        shelves[shelf] = done.last;
    }
    workgroupBarrier();
    if (is_left && number >= left[slice]) {
        var q = shelves[shelf];
        for (var i = left[slice]; i < number; i += 1u) {
            q = combine(q, shelves[shelf + i]);
        }
        for (var m = 0u; m < count; m += 1u) {
            let next = combine(q, class_at(place + m));
            leave_bits(place + m, encode(select(next, q, params.exclusive == 1u)));
            q = next;
        }
    }
}
