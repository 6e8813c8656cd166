// Scans the tiles that scan_lookback or scan_strip_lookback has left, except those that scan_repair has written.
//
// It also clears what they hand from workgroup to workgroup, for the next time. Where scratch memory may hold anything
// else, it runs before as well, and does nothing but that.
// Grid: one workgroup of 256 invocations for each 8 tiles, one after the other, as mostly none is left; or for each
// tile, where all are. One invocation for each run of 16 elements.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state: of floats what scan_repair left;
// of integers the totals of tiles, and the carry after the window if its last tile is left.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, tile_elements (512, 1024, 2048 or 4096),
// together (1 or 8).
// Bytes moved: 4 for each tile on ordinary data, and what is cleared; else a read and a write for each element of tiles
// that are left.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/memory/elements.wgsl"
#import "lib/order/order.wgsl"
#import "lib/order/exceptional.wgsl"
#import "lib/order/carry.wgsl"
#import <run_access>
#import <tile>
#import "lib/memory/state.wgsl"
#import "lib/tiles/state.wgsl"

// Fewer than those of the canonical order where parts of integer tiles count as tiles.
override tile_elements: u32 = 4096u;
// Tiles of a workgroup.
override together: u32 = 8u;

var<workgroup> ends: array<Accumulator, 256>;

#import "lib/tiles/fold_before.wgsl"

// Kinds of the tiles, two bits each; and the same once all are there.
var<workgroup> found_kinds: atomic<u32>;
var<workgroup> kinds: u32;

// What scan_repair says of a slice.
fn is_all_written(slice: u32) -> bool {
    return !EXACT && state_word(slice_word(slice) + SUSPECT) == ALL_WRITTEN;
}

const WRITTEN = 0u;
const ORDINARY = 1u;
const CLASSES = 2u;

// Slice and tile of a number. What is near in memory has near numbers: tiles of a slice, or slices of a strip.
fn tile_of_number(number: u32) -> vec2<u32> {
    if ((params.lookback & OF_STRIPS) != 0u) {
        return vec2<u32>(number % params.count, number / params.count);
    }
    return vec2<u32>(number / params.tiles, number % params.tiles);
}

fn kind_of(number: u32) -> u32 {
    let at = tile_of_number(number);
    let slice = at.x;
    let tile = at.y;
    if (number >= params.count * params.tiles) {
        return WRITTEN;
    }
    if (is_all_written(slice) || is_tile_written(slice, tile)) {
        return WRITTEN;
    }
    return select(ORDINARY, CLASSES, !EXACT && tile >= state_word(slice_word(slice) + ABSORBED));
}

fn scan_tile(lane: u32, slice: u32, tile: u32, how: u32) {
    let place = place_of(slice);
    let begin = tile * tile_elements;
    let count = min(params.length - begin, tile_elements);
    fold_tile(lane, place.input + begin * params.input_axis_stride, count, how == CLASSES);
    workgroupBarrier();
    let start = carry_before(slice);
    let present = tile > 0u || has_base(start);
    var base = tile_accumulator(slice, tile, TILE_BASE);
    if (EXACT) {
        base = fold_before(lane, slice, tile, start);
    }
    _ = finish_tile(lane, present, base, count);
    ends[lane] = end_of_lane();
    workgroupBarrier();
    var before = start.last;
    if (lane > 0u) {
        before = ends[lane - 1u];
    } else if (tile > 0u) {
        before = tile_accumulator(slice, tile - 1u, TILE_END);
        if (EXACT) {
            before = base;
        }
    }
    if (EXACT && lane == (count - 1u) / FANOUT && params.suspend == 1u && tile + 1u == params.tiles) {
        store_carry(carry_after_word(slice), carry_exceptional(end_of_lane()));
    }
    store_tile(lane, place.output + begin * params.output_axis_stride, count, before);
}

// Clears the workgroup's share of what lies behind the words of all tiles.
fn clear_records(number: u32, lane: u32) {
    let workgroups = (params.count * params.tiles + together - 1u) / together;
    for (var word = header_word() + number * 256u + lane; word < arrayLength(&state); word += workgroups * 256u) {
        set_state_word(word, 0u);
    }
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    workgroupBarrier(); // a driver may still be setting workgroup memory to zero
    let number = workgroup_number(workgroup);
    let first = number * together;
    if (first >= params.count * params.tiles) {
        return;
    }
    clear_records(number, lane);
    if ((params.lookback & BEFORE_LOOKBACK) != 0u) {
        return;
    }
    if (lane == 0u) {
        atomicStore(&found_kinds, 0u);
    }
    workgroupBarrier();
    if (lane < together) {
        atomicOr(&found_kinds, kind_of(first + lane) << (2u * lane));
    }
    workgroupBarrier();
    if (lane == 0u) {
        kinds = atomicLoad(&found_kinds);
    }
    // What is left, the next tile's kind first.
    var left = workgroupUniformLoad(&kinds);
    for (var next = first; left != 0u; next += 1u) {
        if ((left & 3u) != WRITTEN) {
            let at = tile_of_number(next);
            scan_tile(lane, at.x, at.y, left & 3u);
            workgroupBarrier();
        }
        left >>= 2u;
    }
}
