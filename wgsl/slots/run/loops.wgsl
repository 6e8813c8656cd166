// Slot <run>: the folds of a run as loops, for operations so long that drivers take seconds to compile dozens of
// copies.

// As in slots/run/written.wgsl.
fn fold_run(items: Run) -> Run {
    var r = items;
    for (var i = 1u; i < 16u; i += 1u) {
        r[i] = combine(r[i - 1u], r[i]);
    }
    return r;
}

fn left_fold_run(items: Run) -> Run {
    var r = items;
    for (var i = 1u; i < 16u; i += 1u) {
        r[i] = fold(r[i - 1u], items[i]);
    }
    return r;
}

fn results_of_run(present: bool, q: Accumulator, r: Run) -> Run {
    var results = r;
    if (present) {
        for (var i = 0u; i < 16u; i += 1u) {
            results[i] = combine(q, r[i]);
        }
    }
    return results;
}
