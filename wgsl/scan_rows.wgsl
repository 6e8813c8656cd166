// Scans whole slices, or windows of whole tiles, tile after tile.
//
// For slices that are many enough to fill the device: one pass over the data.
// Grid: one workgroup of 256 invocations for each slice.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state: 8 words for each slice, used between windows
// only.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat.
// Bytes moved: each element is read once and written once; exceptional tiles are read twice, and behind them once.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/memory/elements.wgsl"
#import "lib/order/order.wgsl"
#import "lib/tiles/step.wgsl"
#import "lib/memory/state.wgsl"
#import "lib/order/carry_state.wgsl"

// How far a tile was written, and whether only classes of what is behind that count.
struct Advance {
    count: u32,
    classes: bool,
}

var<workgroup> advance: Advance;

// Writes an exceptional tile as a left fold, by one invocation, up to the run behind which only classes count: what is
// taken next begins there. Invocations take turns, as in write_exceptional.
fn write_left(lane: u32, input: u32, output: u32, count: u32, number: u32) {
    if (lane != (number * 8u) % LANES) {
        return;
    }
    let done = left_fold_up_to(true, has_base(carry), carry.last, input, output, count);
    carry = carry_exceptional(done.last);
    advance = Advance(done.count, is_absorbed(carry));
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    workgroupBarrier(); // a driver may still be setting workgroup memory to zero
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
    var begin = 0u;
    for (var number = 0u; begin < params.length; number += 1u) {
        let input = place.input + begin * params.input_axis_stride;
        let output = place.output + begin * params.output_axis_stride;
        let count = min(params.length - begin, TILE);
        if (lane == 0u) {
            advance = Advance(count, false);
        }
        least = select(SMALL, 0u, classes);
        fold_tile(lane, input, count, classes);
        let settled = settle_tile(lane, count, number, classes);
        if (settled.exceptional) {
            write_left(lane, input, output, count, number);
        } else if (lane == 0u) {
            advance.classes = is_absorbed(carry);
        }
        put_tile(lane, output, count, settled);
        let next = workgroupUniformLoad(&advance);
        begin += next.count;
        classes = next.classes;
    }
    if (lane == 0u && params.suspend == 1u) {
        store_carry(slice * CARRY_WORDS, carry);
    }
}
