// Scans what scan_bands and scan_strips have left of columns: from their first exceptional tile on, one invocation a
// slice, a run at a time. Columns without such a tile take no time.
//
// Grid: workgroups of 64 invocations; an invocation a slice.
// Bindings: 0 params, 1 input, 2 output, 3 state: a word a column, as they left it; 8 where there is more than a tile.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat; phase and inside_runs keep their defaults.
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
#import <reads>
#import <writes>
#import "lib/left_fold.wgsl"
#import "lib/slice_tile.wgsl"

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
        let count = min(TILE, params.length - k);
        _ = scan_tile(params.first + k, count, true, false, 0u, &place, &progress);
        k += count;
    }
    if (params.suspend == 1u) {
        keep_suspect_carry(slice, progress.carry);
    }
}
