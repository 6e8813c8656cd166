// What scan_strip_lookback leaves of each tile of floats for the kernels behind it, where its parts are whole tiles;
// where they are not, scan_strip_totals sees to that. Needs lib/strips/stretch.wgsl and lib/strips/posts.wgsl.

#import "lib/order/classes.wgsl"
#import "lib/strips/measures.wgsl"

// Folds the rows of a part, and leaves its record if it is a tile. Returns the shelf that all h are on.
fn fold_part(
    lane: u32, tile: u32, rows: Rows, count: u32, a: ptr<function, Column>, b: ptr<function, Column>,
) -> u32 {
    if (EXACT || has_blocks()) {
        return fold_stretch(0u, lane, a, b);
    }
    if (lane < WIDTH) {
        begin_measures(lane);
    }
    var found_a = Measures(0u, 0u, INFINITE, 0u);
    var found_b = found_a;
    classify_run(first_run(rows), a, &found_a);
    classify_run(second_run(rows), b, &found_b);
    let shelf = fold_stretch(0u, lane, a, b);
    let lead_a = lead_of_run(shelf, 0u, lane, 0u, a);
    measure_run(lead_a, count, a, &found_a);
    let lead_b = lead_of_run(shelf, LANES, lane, 0u, b);
    measure_run(lead_b, count, b, &found_b);
    // A tile's rows are those of a single invocation each: a and b are the only columns.
    post_measures(0u, found_a);
    post_measures(1u, found_b);
    workgroupBarrier();
    if (lane == LANES - 1u) {
        leave_record(0u, tile, lead_a, a);
        leave_record(1u, tile, lead_b, b);
    }
    return shelf;
}
