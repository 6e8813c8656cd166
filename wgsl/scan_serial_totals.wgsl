// Reduces each tile of each slice to its total, and to what tells whether it may be exceptional, with one invocation
// for each tile: for software adapters, where barriers are expensive.
//
// Grid: workgroups of 8 invocations, as many as a CPU runs at a time; one invocation for each tile.
// Bindings: 0 params, 1 input (absent where slots/input/in_output.wgsl), 2 output (not written), 3 state: writes 8
// words for each tile, or 12 where an accumulator has two.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat.
// Bytes moved: each element is read once; 32 or 48 bytes are written for each tile.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/memory/elements.wgsl"
#import "lib/order/order.wgsl"
#import "lib/slices/progress.wgsl"
#import "lib/order/run.wgsl"
#import "lib/order/run_reach.wgsl"
#import <run_access>
#import "lib/memory/state.wgsl"
#import "lib/tiles/state.wgsl"
#import "lib/slices/serial_tile.wgsl"
#import "lib/order/classes.wgsl"

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let number = workgroup_number(workgroup) * LANES + lane;
    if (number >= params.count * params.tiles) {
        return;
    }
    let here = tile_of(number);
    var place = here.place.input;
    least = SMALL;
    var progress = begin_slice();
    // Of the runs before the last: p of the blocks, h of the run before it.
    var p = identity();
    var h = identity();
    var next_h = identity();
    var largest = 0u;
    var largest_r = 0u;
    var smallest = INFINITE;
    var class_word = 0u;
    for (var i = 0u; i < here.count; i += FANOUT) {
        let members = min(here.count - i, FANOUT);
        var items = load_run(place, params.input_axis_stride, members);
        if (EXCEPTIONS && product) {
            items = padded_run(items, members);
        }
        let r = fold_run(items);
        if (EXCEPTIONS) {
            if (product) {
                let reached = reach_of_run(items, r);
                let all = extent(reached, r[15], progress.has_q, progress.q);
                largest_r = max(largest_r, magnitude(of_size(reached.largest)));
                largest = max(largest, largest_of_extent(all));
                smallest = min(smallest, all.smallest);
            } else {
                largest_r = max(largest_r, excess_of_run(r, members));
                let results = results_of_run(progress.has_q, progress.q, r);
                largest = max(largest, excess_of_run(results, members));
            }
            // Of whole tiles: nothing comes behind the last one, which alone may have fewer elements.
            class_word = join_classes(class_word, class_bits_of_run(items));
        }
        progress.r = r[15];
        p = progress.p;
        h = next_h;
        next_h = close_run(i >> RUN_SHIFT, &progress);
        place += FANOUT * params.input_axis_stride;
    }
    let word = tile_word(here.slice, here.tile);
    set_tile_accumulator(here.slice, here.tile, TILE_TOTAL, progress.p);
    set_tile_accumulator(here.slice, here.tile, TILE_P, p);
    set_tile_accumulator(here.slice, here.tile, TILE_H, h);
    set_tile_accumulator(here.slice, here.tile, TILE_R, progress.r);
    set_state_word(word + TILE_LARGEST, largest);
    set_state_word(word + TILE_LARGEST_R, largest_r);
    set_state_word(word + TILE_CLASS, class_word);
    set_state_word(word + TILE_SMALLEST, smallest);
}
