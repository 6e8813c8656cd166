// A run of elements in which slices begin that are no longer than it: a slice is a left fold. Needs lib/order/run.wgsl
// and what reads and writes runs.

// Returns a bit for each element of a run that begins a slice of `length`; the run's first element is number `position`
// of its slice.
fn beginnings(length: u32, position: u32) -> u32 {
    // Bits 0, length, 2 * length, ...: (2^(k * length) - 1) / (2^length - 1).
    let every = ((1u << (31u / length * length)) - 1u) / ((1u << length) - 1u);
    return every << ((length - position) % length);
}

fn begins(at: u32, m: u32) -> bool {
    return ((at >> m) & 1u) == 1u;
}

// An element's result after the one `before`. Without branches, like all arithmetic that is inlined many times
// (docs/kernels.md).
fn next(at: u32, m: u32, before: Accumulator, item: Accumulator) -> Accumulator {
    return select(fold(before, item), item, begins(at, m));
}

// The results of the slices that begin `at` some of the run's elements; the first continues `before`.
fn fold_slices(at: u32, before: Accumulator, items: Run) -> Run {
    var r = items;
    r[0] = next(at, 0u, before, items[0]);
    r[1] = next(at, 1u, r[0], items[1]);
    r[2] = next(at, 2u, r[1], items[2]);
    r[3] = next(at, 3u, r[2], items[3]);
    r[4] = next(at, 4u, r[3], items[4]);
    r[5] = next(at, 5u, r[4], items[5]);
    r[6] = next(at, 6u, r[5], items[6]);
    r[7] = next(at, 7u, r[6], items[7]);
    r[8] = next(at, 8u, r[7], items[8]);
    r[9] = next(at, 9u, r[8], items[9]);
    r[10] = next(at, 10u, r[9], items[10]);
    r[11] = next(at, 11u, r[10], items[11]);
    r[12] = next(at, 12u, r[11], items[12]);
    r[13] = next(at, 13u, r[12], items[13]);
    r[14] = next(at, 14u, r[13], items[14]);
    r[15] = next(at, 15u, r[14], items[15]);
    return r;
}

fn identity_at(at: u32, m: u32, item: Accumulator) -> Accumulator {
    return select(item, identity(), begins(at, m));
}

// The run with the identity where slices begin.
fn with_identities(at: u32, run: Run) -> Run {
    return Run(
        identity_at(at, 0u, run[0]), identity_at(at, 1u, run[1]), identity_at(at, 2u, run[2]),
        identity_at(at, 3u, run[3]), identity_at(at, 4u, run[4]), identity_at(at, 5u, run[5]),
        identity_at(at, 6u, run[6]), identity_at(at, 7u, run[7]), identity_at(at, 8u, run[8]),
        identity_at(at, 9u, run[9]), identity_at(at, 10u, run[10]), identity_at(at, 11u, run[11]),
        identity_at(at, 12u, run[12]), identity_at(at, 13u, run[13]), identity_at(at, 14u, run[14]),
        identity_at(at, 15u, run[15]),
    );
}

// Scans the slices in a run's first `count` elements, the first of which begins one, and writes them at the same place.
fn scan_slices_of_run(place: u32, count: u32) {
    let at = beginnings(params.length, 0u);
    let results = fold_slices(at, identity(), load_run(place, 1u, count));
    var run = results;
    if (params.exclusive == 1u) {
        run = with_identities(at, shifted_run(identity(), results));
    }
    store_run(place, 1u, count, run);
}
