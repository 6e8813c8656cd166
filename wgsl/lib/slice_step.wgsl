// One invocation's next run of a slice: its results, and how far the slice has come. Needs lib/progress_state.wgsl and
// lib/run.wgsl.

// Takes in the run `elements`, of which `count` are there, from element `i` of the slice on; returns what to store.
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
    if (phase == WRITE) {
        // In the order's ranges both folds are the same, and what is out of range was found when checking.
        if (by_left_fold && i > 0u) {
            items[0] = fold((*progress).last, items[0]);
        }
        r = left_fold_run(items);
    } else {
        if (by_left_fold && i > 0u) {
            items[0] = take((*progress).last, items[0]);
        }
        r = fold_run(items);
    }
    let results = results_of_run((*progress).has_q && !by_left_fold, (*progress).q, r);
    if (EXCEPTIONS && phase != WRITE) {
        (*progress).excess = max((*progress).excess, excess_of_run(results, count));
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
