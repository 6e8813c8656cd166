// Scans each tile of each slice and writes the results, except those that scan_repair wrote. As scan_tiles, with one
// invocation for each tile: for software adapters, where barriers are expensive.
//
// Grid: workgroups of 8 invocations, as many as a CPU runs at a time; one invocation for each tile.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state: what scan_carries and scan_repair left.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, lags.
// Bytes moved: each element is read once and written once; 8 or 16 bytes are read for each tile.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/memory/elements.wgsl"
#import "lib/order/order.wgsl"
#import "lib/slices/lag.wgsl"
#import "lib/slices/progress.wgsl"
#import "lib/order/run.wgsl"
#import <run_access>
#import "lib/memory/state.wgsl"
#import "lib/tiles/state.wgsl"
#import "lib/slices/serial_tile.wgsl"

// Returns what comes before a tile, as if it were one long span.
fn carry_into(slice: u32, tile: u32) -> Carry {
    let start = carry_before(slice);
    var result = start;
    result.s = tile_accumulator(slice, tile, TILE_BASE);
    result.has_s = tile > 0u || has_base(start);
    result.tiles = 0u;
    if (tile > 0u) {
        result.last = tile_accumulator(slice, tile - 1u, TILE_END);
    }
    return result;
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let number = workgroup_number(workgroup) * LANES + lane;
    if (number >= params.count * params.tiles) {
        return;
    }
    let here = tile_of(number);
    let classes = EXCEPTIONS && here.tile >= state_word(slice_word(here.slice) + ABSORBED);
    let had_suspect = EXCEPTIONS && state_word(slice_word(here.slice) + SUSPECT) != NO_TILE;
    if (had_suspect && is_tile_written(here.slice, here.tile)) {
        return;
    }
    var place = here.place;
    var progress: Progress;
    begin_tile(&progress, carry_into(here.slice, here.tile));
    let lag = lag_of(lane);
    for (var turn = 0u; turn < here.count + lag; turn += FANOUT) {
        if (turn >= lag) {
            let i = turn - lag;
            let members = min(here.count - i, FANOUT);
            var items = load_run(place.input, params.input_axis_stride, members);
            if (EXCEPTIONS && classes) {
                items = classes_of_run(items);
            }
            let r = fold_run(items);
            let results = results_of_run(progress.has_q, progress.q, r);
            var run = results;
            if (params.exclusive == 1u) {
                run = shifted_run(progress.last, results);
            }
            store_run(place.output, params.output_axis_stride, members, run);
            progress.last = results[15];
            progress.r = r[15];
            close_run(i >> RUN_SHIFT, &progress);
            place.input += FANOUT * params.input_axis_stride;
            place.output += FANOUT * params.output_axis_stride;
        }
    }
}
