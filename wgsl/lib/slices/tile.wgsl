// A tile of a slice by one invocation, a run at a time: its results, and how far the slice has come. Needs
// lib/slices/progress.wgsl, lib/order/run_reach.wgsl, lib/order/left_fold.wgsl and <run_access>.

// What a pass over a window does. Behind it DIRECT, or TRY and REPAIR, all is read at most once where no tile is
// exceptional, but input and output must not share memory; CHECK and WRITE read twice.
const DIRECT = 0u;    // all: writes, and writes exceptional tiles again
const CHECK = 1u;     // writes nothing, and tells WRITE which tiles are exceptional
const TRY = 2u;       // writes, and tells REPAIR the same of a tile that windows cut
const WRITE = 3u;     // writes as it is told
const REPAIR = 4u;    // writes the left fold of exceptional tiles
const FOLD = 5u;      // writes the left fold of slices that are a single run
override phase: u32 = 0u;

// Whether all that the pass writes is a left fold, of which the last result is all that a window needs of another one.
fn folds_left() -> bool {
    return EXACT || phase >= REPAIR;
}

// Whether windows lie inside runs. Otherwise all runs begin in the window, and only a slice's last may be partial.
override inside_runs: bool = false;

// The last of `count` members of a run. Where windows begin with runs, a run with fewer than 16 is a slice's last, and
// nothing comes behind it; nor behind a window inside a run that has not 1, 2, 4 or 8 elements.
fn last_member(run: Run, count: u32) -> Accumulator {
    if (!inside_runs) {
        return run[15];
    }
    let of_few = select(run[0], run[1], count > 1u);
    let of_many = select(run[3], run[7], count > 4u);
    return select(of_few, of_many, count > 2u);
}

// Takes in the run `elements`, of which `count` are there, from element `i` of the slice on; returns what to store.
// `by_left_fold` is for passes that check nothing: those that only write, and integers.
fn step_run(i: u32, count: u32, elements: Run, by_left_fold: bool, progress: ptr<function, Progress>) -> Run {
    var items = elements;
    if (phase == CHECK) {
        var onward = items;
        if (i > 0u) {
            onward[0] = fold((*progress).left, items[0]);
        }
        (*progress).left = last_member(left_fold_run(onward), count);
    }
    var r = items;
    var results = items;
    let continues = inside_runs && i % FANOUT > 0u;
    if (EXACT || phase >= WRITE) {
        if (by_left_fold && i > 0u) {
            items[0] = fold((*progress).last, items[0]);
        } else if (continues) {
            items[0] = fold((*progress).r, items[0]);
        }
        // In the order's ranges both folds are the same, and what is out of range was found when checking.
        r = left_fold_run(items);
        results = results_of_run((*progress).has_q && !by_left_fold, (*progress).q, r);
    } else {
        if (product) {
            items = padded_run(items, count);
        }
        r = items;
        if (continues) {
            r[0] = combine((*progress).r, items[0]);
        }
        r = fold_run(r);
        results = results_of_run((*progress).has_q, (*progress).q, r);
        let largest = excess_of_step(items, r, results, count, (*progress).has_q, (*progress).q);
        (*progress).excess = max((*progress).excess, largest);
    }
    var run = results;
    if (params.exclusive == 1u) {
        run = shifted_run((*progress).last, results);
    }
    (*progress).last = last_member(results, count);
    (*progress).r = last_member(r, count);
    if (by_left_fold) {
        (*progress).left = (*progress).last;
    }
    if (!inside_runs || (i + count) % FANOUT == 0u) {
        close_run((i >> RUN_SHIFT) % 256u, progress);
    }
    return run;
}

// Scans `count` elements of a tile from element `i` of the slice on, which are at `place`, and moves that behind them.
// `ends` tells whether the tile ends there. `progress` is how far the slice has come: what the next run begins with,
// and the largest excess of the tile so far. Of two phases, `is_known` tells the second that the tile is exceptional.
// Returns whether it turns out to be.
fn scan_tile(
    i: u32, count: u32, ends: bool, is_known: bool, lag: u32, place: ptr<function, Place>,
    progress: ptr<function, Progress>,
) -> bool {
    let begin = *place;
    // Behind a NaN, an infinity or a product's zero: only classes count, and the tile cannot be exceptional itself.
    let absorbed = is_absorbed((*progress).carry);
    // Whether it is clear before the tile is read that a left fold gives its results. Where any order does, it is the
    // least work.
    let known = folds_left() || absorbed || (phase == WRITE && is_known);
    // Where such a tile is written elsewhere, the loop below is for what may not be exceptional.
    let is_left_fold = phase == DIRECT && !EXACT && absorbed && ends;
    if (is_left_fold || (phase == TRY && absorbed)) {
        (*place).input += count * params.input_axis_stride;
        (*place).output += count * params.output_axis_stride;
    } else {
        for (var turn = 0u; turn < count + lag; turn += FANOUT) {
            if (turn >= lag) {
                let members = min(count - (turn - lag), FANOUT);
                let items = load_run((*place).input, params.input_axis_stride, members);
                let run = step_run(i + turn - lag, members, items, known, progress);
                if (phase != CHECK) {
                    store_run((*place).output, params.output_axis_stride, members, run);
                }
                (*place).input += members * params.input_axis_stride;
                (*place).output += members * params.output_axis_stride;
            }
        }
    }
    if (!ends) {
        return false;
    }
    // The tile is complete: now its excess tells.
    let found = (phase < WRITE && !known && is_excessive((*progress).excess)) || (phase == TRY && absorbed);
    if (is_left_fold || (phase == DIRECT && !EXACT && found)) {
        let present = has_base((*progress).carry);
        let before = (*progress).carry.last;
        (*progress).left = write_left_fold(present, before, begin.input, begin.output, count);
    }
    close_tile(progress, known || found);
    return found;
}
