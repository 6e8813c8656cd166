// Scans each tile of each slice and writes the results, except those that are written: by scan_repair or by
// scan_lookback.
//
// Grid: one workgroup of 256 invocations for each tile; one invocation for each run of 16 elements.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state: what scan_carries and scan_repair left.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat.
// Bytes moved: each element is read once and written once; 16 bytes are read for each tile.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/elements.wgsl"
#import "lib/order.wgsl"
#import "lib/exceptional.wgsl"
#import "lib/carry.wgsl"
#import <reads>
#import <writes>
#import <tile>
#import "lib/state.wgsl"
#import "lib/tile_state.wgsl"

var<workgroup> ends: array<Accumulator, 256>;
var<workgroup> kind: u32;

const ORDINARY = 0u;
const WRITTEN = 1u;
const CLASSES = 2u;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let number = workgroup_number(workgroup);
    if (number >= params.count * params.tiles) {
        return;
    }
    let slice = number / params.tiles;
    let tile = number % params.tiles;
    if (lane == 0u) {
        kind = WRITTEN;
        if ((state_word(tile_word(slice, tile) + TILE_CLASS) & IS_WRITTEN) == 0u) {
            let suspect = state_word(slice_word(slice) + SUSPECT);
            let absorbed = state_word(slice_word(slice) + ABSORBED);
            kind = select(select(WRITTEN, CLASSES, tile >= absorbed), ORDINARY, tile < suspect);
        }
    }
    let how = workgroupUniformLoad(&kind);
    if (how == WRITTEN) {
        return;
    }
    let place = place_of(slice);
    let begin = tile * TILE;
    let count = min(params.length - begin, TILE);
    fold_tile(lane, place.input + begin * params.input_axis_stride, count, how == CLASSES);
    workgroupBarrier();
    let start = carry_before(slice);
    let present = tile > 0u || has_base(start);
    _ = finish_tile(lane, present, tile_accumulator(slice, tile, TILE_BASE), count);
    ends[lane] = end_of_lane();
    workgroupBarrier();
    var before = start.last;
    if (lane > 0u) {
        before = ends[lane - 1u];
    } else if (tile > 0u) {
        before = tile_accumulator(slice, tile - 1u, TILE_END);
    }
    store_tile(lane, place.output + begin * params.output_axis_stride, count, before);
}
