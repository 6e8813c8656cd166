// Scans whole slices, or windows of whole tiles, tile after tile.
//
// For slices that are many enough to fill the device: one pass over the data.
// Grid: one workgroup of 256 invocations for each slice.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state: 8 words for each slice, used between windows
// only.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat.
// Bytes moved: each element is read once and written once; exceptional tiles are read twice.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/memory/elements.wgsl"
#import "lib/order/order.wgsl"
#import "lib/tiles/step.wgsl"
#import "lib/memory/state.wgsl"
#import "lib/order/carry_state.wgsl"

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let slice = workgroup_number(workgroup);
    if (slice >= params.count) {
        return;
    }
    begin_workgroup(lane);
    if (lane == 0u) {
        if (params.resume == 1u) {
            carry = load_carry(slice * CARRY_WORDS);
        } else {
            carry = fresh_carry();
        }
    }
    let place = place_of(slice);
    var classes = false;
    for (var tile = 0u; tile < params.tiles; tile += 1u) {
        let begin = tile * TILE;
        let input = place.input + begin * params.input_axis_stride;
        let output = place.output + begin * params.output_axis_stride;
        let count = min(params.length - begin, TILE);
        least = select(SMALL, 0u, classes);
        fold_tile(lane, input, count, classes);
        let settled = settle_tile(lane, count, tile, classes);
        write_exceptional(lane, input, output, count, tile, settled);
        put_tile(lane, output, count, settled);
        classes = settled.absorbed;
    }
    workgroupBarrier();
    if (lane == 0u && params.suspend == 1u) {
        store_carry(slice * CARRY_WORDS, carry);
    }
}
