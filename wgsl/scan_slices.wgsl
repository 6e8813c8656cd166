// Scans slices, windows of them, or what other kernels have left of them, one invocation a slice, a run at a time.
//
// For many slices, where software adapters would wait long at barriers, and where a binding holds no whole tiles; and
// behind scan_bands and scan_strips for slices with exceptional tiles. The slot <slices> has what differs.
// Grid: workgroups of `lanes` invocations; an invocation a slice.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state: between windows and phases 8 words a slice, or 49
// of floats where windows end inside a tile, of floats in place 15 or 97 (lib/slices/kept.wgsl); or what scan_bands and
// scan_strips left, a word a slice, and 8 where there is more than a tile.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, phase, in_windows, inside_runs, lanes, lags.
// Phases: DIRECT writes each tile in the canonical order, and writes it again as a left fold if it was exceptional,
// which reads the input again. If windows end inside a tile, TRY leaves a bit where that is to be, and then REPAIR goes
// through the tile's windows; FOLD is for such windows of slices that are a single run, always a left fold. In place
// CHECK goes through all first, writes nothing and leaves a bit for each exceptional tile; then WRITE knows what to
// write.
// Bytes moved: one read and one write an element; in place of floats, and for exceptional tiles, two reads. Nothing of
// slices of which nothing is left.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/memory/elements.wgsl"
#import "lib/order/order.wgsl"
#import "lib/slices/lag.wgsl"
#import <slices>
#import "lib/order/run.wgsl"
#import "lib/order/run_reach.wgsl"
#import <run_access>
#import "lib/order/left_fold.wgsl"
#import "lib/slices/tile.wgsl"

// 8 where there are few slices and software drivers would leave cores idle.
override lanes: u32 = 64u;

@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let slice = workgroup_number(workgroup) * lanes + lane;
    if (slice >= params.count) {
        return;
    }
    var k = first_element(slice);
    if (k >= params.length) {
        return;
    }
    if (phase < WRITE) {
        least = SMALL;  // what is below it becomes NaN, which shows in the tile's excess
    }
    var place = place_of(slice);
    place.input += k * params.input_axis_stride;
    place.output += k * params.output_axis_stride;
    var progress = progress_before(slice, k);
    var exceptions = known_exceptions(slice);
    let lag = lag_of(lane);
    while (k < params.length) {
        // The part of a tile that is in the window.
        let i = params.first + k;
        let count = min(TILE - select(i % TILE, 0u, IN_WHOLE_TILES), params.length - k);
        k += count;
        let is_last = k == params.length && params.suspend == 0u;
        let ends = IN_WHOLE_TILES || (i + count) % TILE == 0u || is_last;
        if (scan_tile(i, count, ends, (exceptions & tile_bit(i)) != 0u, lag, &place, &progress)) {
            exceptions |= tile_bit(i);
        }
    }
    end_window(slice, exceptions, &progress);
}
