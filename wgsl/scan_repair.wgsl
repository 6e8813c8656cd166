// Scans slices from the first tile that may be exceptional on, tile after tile, until only classes count. From there on
// it works out what each tile begins with. Slices without such a tile take no time. A dispatch does one turn of tiles,
// and the next one goes on where it ended: software drivers end long loops, and GPUs have watchdogs. Behind a
// look-back, the first turn works out what each tile of a slice begins with of which tiles are left.
//
// Grid: one workgroup of 256 invocations for each slice.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state: what others left of each tile; writes base and
// end of tiles, and the carry after the window.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, together.
// Bytes moved: nothing on ordinary data.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/memory/elements.wgsl"
#import "lib/order/order.wgsl"
#import "lib/tiles/step.wgsl"
#import "lib/tiles/left_fold_together.wgsl"
#import "lib/memory/state.wgsl"
#import "lib/tiles/state.wgsl"
#import "lib/order/classes.wgsl"
#import "lib/order/bounds.wgsl"

const SPANS = LANES;

#import "lib/tiles/bases.wgsl"

// Whether it is the first turn over a slice of which a look-back has left tiles.
var<workgroup> finds_bases: u32;
var<workgroup> first_tile: u32;
var<workgroup> goes_on: u32;
var<workgroup> totals: array<u32, 256>;

// Returns what comes before tile `tile`, if no earlier tile of the window is exceptional.
fn carry_into(slice: u32, tile: u32) -> Carry {
    var result = carry_before(slice);
    var t = 0u;
    let in_span = (result.tiles + tile) % FANOUT;
    if (in_span < tile) {
        // The first tile of a span: its base is s.
        t = tile - in_span;
        result = Carry(tile_accumulator(slice, t, TILE_BASE), identity(), identity(), 0u, true);
    }
    for (; t < tile; t += 1u) {
        result = carry_on(result, tile_accumulator(slice, t, TILE_TOTAL), result.last);
    }
    if (tile > 0u) {
        result.last = tile_accumulator(slice, tile - 1u, TILE_END);
    }
    return result;
}

// Returns the first tile of the turn: NO_TILE if none up to its end may be exceptional, or if only classes count.
fn first_of_turn(slice: u32) -> u32 {
    let suspect = state_word(slice_word(slice) + SUSPECT);
    let is_done = state_word(slice_word(slice) + ABSORBED) != NO_TILE;
    if (is_done || suspect >= min(params.tiles, params.turn_first + params.turn_tiles)) {
        return NO_TILE;
    }
    return max(suspect, params.turn_first);
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let slice = workgroup_number(workgroup);
    if (slice >= params.count) {
        return;
    }
    if (lane == 0u) {
        finds_bases = 0u;
        if ((params.lookback & BEHIND_LOOKBACK) != 0u && params.turn_first == 0u) {
            finds_bases = u32(is_left(slice));
            set_state_word(slice_word(slice) + SUSPECT, ALL_WRITTEN);
        }
    }
    if (workgroupUniformLoad(&finds_bases) == 1u) {
        find_bases(lane, slice);
    }
    if (lane == 0u) {
        first_tile = first_of_turn(slice);
    }
    let first = workgroupUniformLoad(&first_tile);
    if (first == NO_TILE) {
        return;
    }
    begin_workgroup(lane);
    least = SMALL;
    if (lane == 0u) {
        if (first == state_word(slice_word(slice) + SUSPECT)) {
            carry = carry_into(slice, first);
        } else {
            carry = load_carry(carry_after_word(slice));
        }
        goes_on = u32(!is_absorbed(carry));
    }
    let place = place_of(slice);
    let end_of_turn = min(params.tiles, params.turn_first + params.turn_tiles);
    var tile = first;
    while (workgroupUniformLoad(&goes_on) == 1u) {
        let begin = tile * TILE;
        let input = place.input + begin * params.input_axis_stride;
        let output = place.output + begin * params.output_axis_stride;
        let count = min(params.length - begin, TILE);
        fold_tile(lane, input, count, false);
        var settled = settle_tile(lane, count, tile - first, false);
        if (together) {
            settled = fold_together(lane, settled);
        } else {
            write_exceptional(lane, input, output, count, tile - first, settled);
        }
        put_tile(lane, output, count, settled);
        tile += 1u;
        workgroupBarrier();
        if (lane == 0u) {
            goes_on = u32(tile < end_of_turn && !is_absorbed(carry));
            set_tile_accumulator(slice, tile - 1u, TILE_END, carry.last);
        }
    }
    // Behind an absorbing result: each invocation folds the classes of some tiles, then gives each what comes before.
    let rest = select(0u, params.tiles - tile, is_absorbed(carry));
    let share = (rest + LANES - 1u) / LANES;
    let mine = min(tile + lane * share, params.tiles);
    let end = min(mine + share, params.tiles);
    var class_word = 0u;
    for (var t = mine; t < end; t += 1u) {
        class_word = join_classes(class_word, state_word(tile_word(slice, t) + TILE_CLASS));
    }
    totals[lane] = class_word;
    workgroupBarrier();
    var base = carry.last;
    for (var i = 0u; i < lane; i += 1u) {
        base = combine(base, of_class(totals[i]));
    }
    for (var t = mine; t < end; t += 1u) {
        set_tile_accumulator(slice, t, TILE_BASE, base);
        base = combine(base, of_class(state_word(tile_word(slice, t) + TILE_CLASS)));
        set_tile_accumulator(slice, t, TILE_END, base);
    }
    workgroupBarrier();
    storageBarrier(); // invocation 0 has read the carry that is replaced
    if (lane == LANES - 1u) {
        if (rest > 0u) {
            carry = carry_exceptional(base);
        }
        if (rest > 0u || tile == params.tiles) {
            set_state_word(slice_word(slice) + ABSORBED, tile);
        }
        store_carry(carry_after_word(slice), carry);
    }
}
