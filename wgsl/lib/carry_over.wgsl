// Works out the carry behind a full tile, by one invocation. Needs lib/progress.wgsl and <reads>.

fn carry_over(before: Carry, input: u32) -> Carry {
    let least_here = least;
    least = SMALL;
    var progress: Progress;
    begin_tile(&progress, before);
    for (var i = 0u; i < TILE; i += FANOUT) {
        let items = load_run(input + i * params.input_axis_stride, params.input_axis_stride, FANOUT);
        var onward = items;
        if (has_base(before) || i > 0u) {
            onward[0] = fold(progress.left, items[0]);
        }
        progress.left = left_fold_run(onward)[15];
        let r = fold_run(items);
        let results = results_of_run(progress.has_q, progress.q, r);
        let largest = excess_of_step(items, r, results, FANOUT, progress.has_q, progress.q);
        progress.excess = max(progress.excess, largest);
        progress.last = results[15];
        progress.r = r[15];
        close_run(i >> RUN_SHIFT, &progress);
    }
    close_tile(&progress, is_excessive(progress.excess));
    least = least_here;
    return progress.carry;
}
