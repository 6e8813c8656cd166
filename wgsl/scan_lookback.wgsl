// Scans slices, or windows of whole tiles, in one pass: a workgroup takes a tile, and looks back for what comes before.
//
// For slices too few to fill a GPU with a workgroup each. A workgroup posts the total of its tile, which depends on its
// elements alone, before it waits. Then it folds the totals of its span's earlier tiles, and those of the spans before,
// from the nearest known prefix on, left to right as the canonical order has it. A tile is written only if neither it
// nor any before it may be exceptional. Others are left to scan_repair and scan_tiles.
//
// With a patience of 0 nobody waits: totals are worked out, and all tiles are left. That is for GPUs on which reading
// twice takes less time than words that all workgroups look at.
// Grid: one workgroup of 256 invocations for each tile, in the order of tickets if they wait.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state, zero where scan_tiles clears it.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, patience; withhold_every in tests.
// Bytes moved: one read and one write an element, or one read; of sums with NaN or infinity another read of a tile; 120
// to 400 bytes a tile.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/memory/elements.wgsl"
#import "lib/order/order.wgsl"
#import "lib/order/exceptional.wgsl"
#import "lib/order/carry.wgsl"
#import <run_access>
#import <tile>
#import "lib/memory/state_atomic.wgsl"
#import "lib/tiles/state.wgsl"
#import "lib/order/classes.wgsl"
#import "lib/order/bounds.wgsl"
#import "lib/lookback/records.wgsl"
#import "lib/lookback/withheld.wgsl"
#import "lib/lookback/tile.wgsl"
#import "lib/lookback/span.wgsl"
#import "lib/lookback/spans.wgsl"

var<workgroup> drawn: vec2<u32>;
var<workgroup> before_tile: Accumulator;
var<workgroup> is_written: u32;
var<workgroup> ends: array<Accumulator, LANES>;

fn begin_workgroup(number: u32, lane: u32) {
    if (lane == 0u) {
        var ticket = number;
        if (patience > 0u) {
            ticket = atomicAdd(&state[header_word() + TICKET], 1u);
        }
        let slice = ticket % params.count;
        drawn = vec2<u32>(slice, ticket / params.count);
        start = carry_before(slice);
        begin_measures();
        begin_looks();
    }
}

// Decides whether to write the tile, and posts the prefix of the span if this is its last. By the first invocation.
fn settle(at: Position) {
    let is_safe = is_proven_safe();
    if (is_safe && params.exclusive == 1u) {
        before_tile = result_before(at);
    }
    is_written = u32(is_safe && !is_missing());
    if (EXCEPTIONS && is_written == 0u) {
        atomicMax(&state[left_word(at.slice)], NO_TILE - at.tile);
    }
    if (at.is_last && !is_withheld(ticket_of(at))) {
        let word = span_record(at.slice, at.span);
        if (is_safe) {
            publish_accumulator(word + PREFIX, append(has_s, s, totals[at.before]));
            if (has_ends()) {
                publish_accumulator(word + SPAN_END, result_at(at.before, at, own_last));
            }
        }
        set_state_word(word + PREFIX_FLAGS, select(WRITTEN, WRITTEN | IS_SAFE, is_safe));
    }
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    workgroupBarrier(); // a driver may still be setting workgroup memory to zero
    begin_workgroup(workgroup_number(workgroup), lane);
    let mine = workgroupUniformLoad(&drawn);
    if (mine.y >= params.tiles) {
        return;
    }
    let at = position_of(mine.x, mine.y, start.tiles);
    let place = place_of(at.slice);
    let begin = at.tile * TILE;
    let output = place.output + begin * params.output_axis_stride;
    let count = min(params.length - begin, TILE);
    least = SMALL;
    let input = place.input + begin * params.input_axis_stride;
    fold_tile(lane, input, count, false);
    workgroupBarrier();
    let r = results;
    if (EXCEPTIONS) {
        measure_tile(lane, input, count);
    }
    if (lane == LANES - 1u) {
        delay_withheld(ticket_of(at), header_word() + DELAYS);
        post_tile(at, r[15]);
    }
    if (patience == 0u) {
        return;
    }
    results = r;
    look_at_tiles(lane, at);
    workgroupBarrier();
    if (lane == 0u) {
        fold_span(at);
    }
    for (var look = 0u; workgroupUniformLoad(&looking) == LOOKS; look += 1u) {
        look_at_spans(lane, at, look);
    }
    if (lane == 0u && looking == HAS_FOUND) {
        fold_spans(at);
    }
    workgroupBarrier();
    look_at_bases(lane, at);
    workgroupBarrier();
    if (lane == 0u) {
        settle(at);
    }
    if (workgroupUniformLoad(&is_written) == 0u) {
        return;
    }
    _ = finish_tile(lane, has_base_at(at.before, at), base_at(at.before, at), count);
    ends[lane] = end_of_lane();
    workgroupBarrier();
    if (lane == LANES - 1u) { // which has stored the class: no barrier of a workgroup orders storage
        atomicOr(&state[tile_word(at.slice, at.tile) + TILE_CLASS], IS_WRITTEN);
    }
    if (lane == 0u && params.suspend == 1u && at.tile + 1u == params.tiles) {
        let tiles = (start.tiles + at.tile) % FANOUT;
        let carry = Carry(s, folds[at.before], identity(), tiles, has_s);
        store_carry(carry_after_word(at.slice), carry_on(carry, total_of_tile, ends[LANES - 1u]));
    }
    var before = before_tile;
    if (lane > 0u) {
        before = ends[lane - 1u];
    }
    store_tile(lane, output, count, before);
}
