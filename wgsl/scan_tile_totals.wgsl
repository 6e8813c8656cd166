// Reduces each tile of each slice to its total, for slices of more than one tile.
//
// Grid: a workgroup of 256 invocations a tile; an invocation a run of 16 elements.
// Bindings: 0 params, 1 input (absent in place), 2 output (not written), 3 state: writes four values a tile.
// Constants: product, opaque, input_log2_bits, output_log2_bits.
// Bytes moved: one read an element; 4 accumulators written a tile.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/load_bits.wgsl"
#import <element>
#import "lib/order.wgsl"
#import "lib/tile.wgsl"
#import "lib/tile_state.wgsl"

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let number = workgroup_number(workgroup);
    if (number >= params.count * params.tiles) {
        return;
    }
    let slice = number / params.tiles;
    let tile = number % params.tiles;
    let run = fold_run((tile * LANES + lane) * FANOUT, place_of(slice).input);
    _ = scan_runs(lane, run.total);
    // Only full tiles are followed by another, so only theirs are asked for.
    if (lane == LANES - 1u) {
        let record = tile_record(slice, tile);
        let p = fold_blocks(FANOUT - 1u);
        state[record + TILE_TOTAL] = combine(p, shelves[0][LANES - 1u]);
        state[record + TILE_P] = p;
        state[record + TILE_H] = shelves[0][LANES - 2u];
        state[record + TILE_R] = run.total;
    }
}
