// Scans whole slices, or windows of whole runs, one invocation a slice, a run at a time.
//
// For many slices, and where software adapters would wait long at barriers.
// Grid: workgroups of `lanes` invocations; an invocation a slice.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state: 101 words a slice, used between windows and phases.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, phase, in_windows, lanes, lags.
// Phases: DIRECT writes each tile in the canonical order, and writes it again as a left fold if it was exceptional,
// which reads the input again. Where that cannot be (in place, or if windows end inside a tile), CHECK goes through all
// first, writes nothing and leaves a bit for each exceptional tile; then WRITE knows what to write.
// Bytes moved: one read and one write an element; in two phases, and for exceptional tiles, two reads.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/elements.wgsl"
#import "lib/order.wgsl"
#import "lib/lag.wgsl"
#import "lib/progress_state.wgsl"
#import "lib/run.wgsl"
#import "lib/run_reach.wgsl"
#import "lib/slice_step.wgsl"
#import <reads>
#import <writes>
#import "lib/left_fold.wgsl"

// 8 where there are few slices and software drivers would leave cores idle.
override lanes: u32 = 64u;

// Takes in the run of `count` elements from element `i` of the slice on, and writes its results. `progress` is how far
// the slice has come: what the next run begins with, and the largest excess of the tile so far.
fn scan_run(i: u32, count: u32, place: Place, by_left_fold: bool, progress: ptr<function, Progress>) {
    let items = load_run(place.input, params.input_axis_stride, count);
    let run = step_run(i, count, items, by_left_fold, progress);
    if (phase != CHECK) {
        store_run(place.output, params.output_axis_stride, count, run);
    }
}

@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let slice = workgroup_number(workgroup) * lanes + lane;
    if (slice >= params.count) {
        return;
    }
    if (phase != WRITE) {
        least = SMALL;  // what is below it becomes NaN, which shows in the tile's excess
    }
    var place = place_of(slice);
    var progress = before_window(slice);
    var exceptions = known_exceptions(slice);
    let lag = lag_of(lane);
    var k = 0u;
    while (k < params.length) {
        // The part of a tile that is in the window.
        let i = params.first + k;
        let tile_place = place;
        let count = min(TILE - i % TILE, params.length - k);
        // Behind a NaN, an infinity or a product's zero: only classes count, and the tile cannot be exceptional itself.
        let absorbed = is_absorbed(progress.carry);
        // Whether it is clear before the tile is read that a left fold gives its results.
        let known = EXACT || absorbed || (phase == WRITE && (exceptions & tile_bit(i)) != 0u);
        // Where any order does, a left fold is the least work.
        for (var turn = 0u; turn < count + lag; turn += FANOUT) {
            if (turn >= lag) {
                let done = turn - lag;
                scan_run(i + done, min(count - done, FANOUT), place, known, &progress);
                place.input += FANOUT * params.input_axis_stride;
                place.output += FANOUT * params.output_axis_stride;
            }
        }
        k += count;
        let is_last = k == params.length && params.suspend == 0u;
        if ((i + count) % TILE == 0u || is_last) {
            // The tile is complete: now its excess tells.
            let found = phase != WRITE && !known && is_excessive(progress.excess);
            if (found) {
                exceptions |= tile_bit(i);
            }
            if (phase == DIRECT && !EXACT && (found || absorbed)) {
                let present = has_base(progress.carry);
                let before = progress.carry.last;
                progress.left = write_left_fold(present, before, tile_place.input, tile_place.output, count);
            }
            close_tile(&progress, known || found);
        }
    }
    end_window(slice, &progress);
    if (phase == CHECK) {
        set_state_word(slice, exceptions);
    }
}
