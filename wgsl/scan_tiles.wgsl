// Scans each tile of each slice and writes the results.
//
// Grid: a workgroup of 256 invocations a tile; an invocation a run of 16 elements.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state: reads base and end of tiles (scan_carries), unless
// the tile is the slice's first.
// Constants: product, opaque, input_log2_bits, output_log2_bits.
// Bytes moved: one read and one write an element; 2 accumulators read a tile.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/load_bits.wgsl"
#import <element>
#import "lib/order.wgsl"
#import "lib/tile.wgsl"
#import "lib/tile_state.wgsl"

// What the exclusive result of the tile's first element is: the inclusive result before it.
fn result_before(slice: u32, tile: u32) -> Accumulator {
    if (tile > 0u) {
        return state[tile_record(slice, tile - 1u) + TILE_END];
    }
    if (params.first > 0u) {
        return state[slice_record(slice) + SLICE_BEFORE];
    }
    return identity();
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let number = workgroup_number(workgroup);
    if (number >= params.count * params.tiles) {
        return;
    }
    let slice = number / params.tiles;
    let tile = number % params.tiles;
    let base = place_of(slice);
    let start = (tile * LANES + lane) * FANOUT;
    var run = fold_run(start, base.input);
    _ = scan_runs(lane, run.total);

    // q, what the run's results begin with: ((s + c) + p) + h, each where present.
    var q: Accumulator;
    var present = tile > 0u || params.first > 0u;
    if (present) {
        q = state[tile_record(slice, tile) + TILE_BASE];
    }
    let block = lane / FANOUT;
    if (block > 0u) {
        q = append(present, q, fold_blocks(block));
        present = true;
    }
    if (lane % FANOUT > 0u) {
        q = append(present, q, shelves[0][lane - 1u]);
        present = true;
    }
    for (var i = 0u; i < run.length; i += 1u) {
        run.items[i] = append(present, q, run.items[i]);
    }

    var place = base.output + start * params.output_axis_stride;
    if (params.exclusive == 0u) {
        for (var i = 0u; i < run.length; i += 1u) {
            store(place, run.items[i]);
            place += params.output_axis_stride;
        }
        return;
    }
    // Exclusive results are the inclusive ones one element later; the run's first comes from the run before.
    shelves[1][lane] = run.items[FANOUT - 1u];
    workgroupBarrier();
    var before: Accumulator;
    if (lane > 0u) {
        before = shelves[1][lane - 1u];
    } else {
        before = result_before(slice, tile);
    }
    for (var i = 0u; i < run.length; i += 1u) {
        store(place, before);
        before = run.items[i];
        place += params.output_axis_stride;
    }
}
