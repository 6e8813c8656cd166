// Scans slices, or windows of whole tiles, in one pass: each workgroup takes a tile and goes on from the tile before.
//
// For long slices that are too few to fill the device with a workgroup each. Carries go from tile to tile strictly in
// order, as the canonical order and exceptional tiles demand. A workgroup draws a ticket, so every workgroup it waits
// for has begun. No standard promises that a begun workgroup goes on, so after a long wait the workgroup works out
// the carry itself, from the last one that is there.
// Grid: one workgroup of LANES invocations (slot <tile>) for each tile.
// Bindings: 0 params, 1 input (absent where input_in_output; never in place), 2 output, 3 state (scan_chain_clear).
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, patience, exact_grid; withhold_every in tests.
// Bytes moved: each element is read once and written once; 28 to 52 bytes are written and read for each tile.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/elements.wgsl"
#import "lib/order.wgsl"
#import "lib/tile_step.wgsl"
#import "lib/progress.wgsl"
#import "lib/state_atomic.wgsl"
#import "lib/chain_records.wgsl"
#import "lib/withheld.wgsl"
#import "lib/carry_over.wgsl"

// How many times to look for the carry before working it out.
override patience: u32 = 2000u;
// Whether there are exactly as many workgroups as tiles: software drivers are faster without the early return.
override exact_grid: bool = false;
var<workgroup> drawn: vec3<u32>;

// Returns what tile `tile` of a slice goes on from.
fn wait_for_carry(slice: u32, tile: u32, place: Place) -> Carry {
    var start = fresh_carry();
    if (params.resume == 1u) {
        start = load_carry(carry_word(slice, params.carry_side));
    }
    // Walk back from the wanted record to the last one that is there, or to the start.
    var origin = tile;
    var reading = Reading(start, tile == 0u);
    for (var look = 0u; look < patience && !reading.complete; look += 1u) {
        reading = read_record((tile - 1u) * params.count + slice);
    }
    while (!reading.complete) {
        origin -= 1u;
        if (origin == 0u) {
            reading = Reading(start, true);
        } else {
            reading = read_record((origin - 1u) * params.count + slice);
        }
    }
    // Usually origin == tile, and nothing is left to do.
    var result = reading.carry;
    for (; origin < tile; origin += 1u) {
        result = carry_over(result, place.input + origin * TILE * params.input_axis_stride);
    }
    return result;
}

// The word in which a slice keeps ~t if carries are absorbed from tile t on: a number that only grows.
fn absorbed_word(slice: u32) -> u32 {
    return carry_word(slice, 0u) + CARRY_SPARE;
}

@compute @workgroup_size(LANES)
fn main(@builtin(local_invocation_index) lane: u32) {
    begin_workgroup(lane);
    if (lane == 0u) {
        let ticket = atomicAdd(&state[TICKET], 1u);
        let slice = ticket % params.count;
        drawn = vec3<u32>(slice, ticket / params.count, state_word(absorbed_word(slice)));
    }
    let mine = workgroupUniformLoad(&drawn);
    let slice = mine.x;
    let tile = mine.y;
    if (!exact_grid && tile >= params.tiles) {
        return;
    }
    let classes = EXCEPTIONS && tile >= ~mine.z;
    let place = place_of(slice);
    let begin = tile * TILE;
    let input = place.input + begin * params.input_axis_stride;
    let output = place.output + begin * params.output_axis_stride;
    let count = min(params.length - begin, TILE);
    least = select(SMALL, 0u, classes);
    fold_tile(lane, input, count, classes);
    if (lane == 0u) {
        delay_withheld(tile * params.count + slice, DELAYS);
        carry = wait_for_carry(slice, tile, place);
    }
    let settled = settle_tile(lane, count, 0u, classes);
    write_exceptional(lane, input, output, count, 0u, settled);
    if (lane == 0u) {
        let ticket = tile * params.count + slice;
        if (!is_withheld(ticket)) {
            publish(ticket, carry);
        }
        if (EXCEPTIONS && is_absorbed(carry)) {
            atomicMax(&state[absorbed_word(slice)], ~(tile + 1u));
        }
        if (params.suspend == 1u && tile + 1u == params.tiles) {
            store_carry(carry_word(slice, 1u - params.carry_side), carry);
        }
    }
    put_tile(lane, output, count, settled);
}
