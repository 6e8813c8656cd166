// Reduces each tile of each slice to its total, and to what tells whether it may be exceptional.
//
// Grid: one workgroup of 256 invocations for each tile; one invocation for each run of 16 elements.
// Bindings: 0 params, 1 input (absent where input_in_output), 2 output (not written), 3 state: writes 12 words for
// each tile.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat.
// Bytes moved: each element is read once; 48 bytes are written for each tile.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/elements.wgsl"
#import "lib/order.wgsl"
#import "lib/exceptional.wgsl"
#import "lib/carry.wgsl"
#import <reads>
#import <writes>
#import "lib/tile_runs.wgsl"
#import "lib/run_extremes.wgsl"
#import "lib/tile_state.wgsl"
#import "lib/classes.wgsl"

var<workgroup> largest: atomic<u32>;
var<workgroup> largest_r: atomic<u32>;
var<workgroup> smallest: atomic<u32>;
var<workgroup> class_or: atomic<u32>;
var<workgroup> class_xor: atomic<u32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let number = workgroup_number(workgroup);
    if (number >= params.count * params.tiles) {
        return;
    }
    if (lane == 0u) {
        atomicStore(&largest, 0u);
        atomicStore(&largest_r, 0u);
        atomicStore(&smallest, INFINITE);
        atomicStore(&class_or, 0u);
        atomicStore(&class_xor, 0u);
    }
    let slice = number / params.tiles;
    let tile = number % params.tiles;
    let begin = tile * TILE;
    let count = min(params.length - begin, TILE);
    let input = place_of(slice).input + begin * params.input_axis_stride;
    least = SMALL;
    fold_tile(lane, input, count, false);
    workgroupBarrier();
    let r = results;
    let h = shelves[0][lane - min(lane, 1u)];
    if (EXCEPTIONS) {
        let first = min(lane * LANE_ELEMENTS, count);
        let members = min(count - first, LANE_ELEMENTS);
        _ = finish_tile(lane, false, identity(), count);
        if (product) {
            let is_there = members > 0u;
            atomicMax(&largest_r, select(0u, magnitude(of_size(reached.largest)), is_there));
            atomicMax(&largest, select(0u, largest_of_extent(extremes), is_there));
            atomicMin(&smallest, select(INFINITE, extremes.smallest, is_there));
        } else {
            atomicMax(&largest_r, largest_of_run(r, members));
            atomicMax(&largest, largest_of_run(results, members));
        }
        // Of whole tiles: nothing comes behind the last one, which alone may have fewer elements.
        let class_word = class_bits_of_run(taken);
        atomicOr(&class_or, class_word);
        atomicXor(&class_xor, class_word & IS_NEGATIVE);
        workgroupBarrier();
    }
    if (lane == LANES - 1u) {
        let p = fold_blocks(FANOUT - 1u);
        let word = tile_word(slice, tile);
        set_tile_accumulator(slice, tile, TILE_TOTAL, link(p, shelves[0][LANES - 1u]));
        set_tile_accumulator(slice, tile, TILE_P, p);
        set_tile_accumulator(slice, tile, TILE_H, h);
        set_tile_accumulator(slice, tile, TILE_R, r[15]);
        set_state_word(word + TILE_LARGEST, atomicLoad(&largest));
        set_state_word(word + TILE_LARGEST_R, atomicLoad(&largest_r));
        set_state_word(word + TILE_SMALLEST, atomicLoad(&smallest));
        set_state_word(word + TILE_CLASS, (atomicLoad(&class_or) & ~IS_NEGATIVE) | atomicLoad(&class_xor));
    }
}
