// One invocation's next run of a slice: its results, and how far the slice has come. Needs lib/progress_state.wgsl,
// lib/run.wgsl and lib/run_reach.wgsl.

// Takes in the run `elements`, of which `count` are there, from element `i` of the slice on; returns what to store.
// `by_left_fold` is for passes that check nothing: those that only write, and integers.
fn step_run(i: u32, count: u32, elements: Run, by_left_fold: bool, progress: ptr<function, Progress>) -> Run {
    var items = elements;
    if (phase == CHECK) {
        var onward = items;
        if (i > 0u) {
            onward[0] = fold((*progress).left, items[0]);
        }
        (*progress).left = left_fold_run(onward)[15];
    }
    var r = items;
    var results = items;
    if (EXACT || phase == WRITE) {
        if (by_left_fold && i > 0u) {
            items[0] = fold((*progress).last, items[0]);
        }
        // In the order's ranges both folds are the same, and what is out of range was found when checking.
        r = left_fold_run(items);
        results = results_of_run((*progress).has_q && !by_left_fold, (*progress).q, r);
    } else {
        if (product) {
            items = padded_run(items, count);
        }
        r = fold_run(items);
        results = results_of_run((*progress).has_q, (*progress).q, r);
        let largest = excess_of_step(items, r, results, count, (*progress).has_q, (*progress).q);
        (*progress).excess = max((*progress).excess, largest);
    }
    var run = results;
    if (params.exclusive == 1u) {
        run = shifted_run((*progress).last, results);
    }
    (*progress).last = results[15];
    (*progress).r = r[15];
    if (by_left_fold) {
        (*progress).left = results[15];
    }
    close_run((i >> RUN_SHIFT) % 256u, progress);
    return run;
}
