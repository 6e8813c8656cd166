// Scans what scan_bands and scan_strips have left of columns: from their first exceptional tile on, one invocation a
// slice, a run at a time. Columns without such a tile take no time.
//
// Grid: workgroups of 64 invocations; an invocation a slice.
// Bindings: 0 params, 1 input, 2 output, 3 state: a word a column, as they left it; 8 where there is more than a tile.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat.
// Bytes moved: nothing on ordinary data; else a read and a write an element, and two reads of exceptional tiles.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/elements.wgsl"
#import "lib/order.wgsl"
#import "lib/progress.wgsl"
#import "lib/suspects.wgsl"
#import "lib/run.wgsl"
#import "lib/run_reach.wgsl"

// The one of the phases of scan_slices that this is: results are written at once, and exceptional tiles again.
const DIRECT = 0u;
const CHECK = 1u;
const WRITE = 2u;
const phase = DIRECT;

#import "lib/slice_step.wgsl"
#import <reads>
#import <writes>
#import "lib/left_fold.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let slice = workgroup_number(workgroup) * 64u + lane;
    if (slice >= params.count) {
        return;
    }
    let suspect = state_word(column_word(slice, SUSPECT));
    if (suspect == 0u) {
        return;
    }
    least = SMALL;
    var k = max((suspect - 1u) * TILE, params.first) - params.first;
    var progress = begin_slice();
    if (params.first + k > 0u) {
        let tiles = state_word(column_word(slice, TILES));
        begin_tile(&progress, fetch_carry(slice, tiles & 0xffu, (tiles & 0x100u) != 0u));
    }
    var place = place_of(slice);
    place.input += k * params.input_axis_stride;
    place.output += k * params.output_axis_stride;
    while (k < params.length) {
        let i = params.first + k;
        let tile_place = place;
        let count = min(TILE, params.length - k);
        let absorbed = is_absorbed(progress.carry);
        for (var done = 0u; done < count; done += FANOUT) {
            let members = min(count - done, FANOUT);
            let items = load_run(place.input, params.input_axis_stride, members);
            let run = step_run(i + done, members, items, false, &progress);
            store_run(place.output, params.output_axis_stride, members, run);
            place.input += FANOUT * params.input_axis_stride;
            place.output += FANOUT * params.output_axis_stride;
        }
        k += count;
        let by_left_fold = absorbed || is_excessive(progress.excess);
        if (by_left_fold) {
            let present = has_base(progress.carry);
            let before = progress.carry.last;
            progress.left = write_left_fold(present, before, tile_place.input, tile_place.output, count);
        }
        close_tile(&progress, by_left_fold);
    }
    if (params.suspend == 1u) {
        keep_suspect_carry(slice, progress.carry);
    }
}
