// Scans the tiles of slices that may be exceptional, one after the other, until only classes count. From there on it
// works out what each tile begins with. Slices without such a tile take no time.
//
// Tiles in between are left to scan_tiles or scan_serial_tiles: behind each that it has scanned, it works out again
// what those that follow begin with, and which may be exceptional. If these are too many for that, it scans the ones
// between as well. A dispatch does one turn of tiles, and the next one goes on where it ended: software drivers end
// long loops, and GPUs have watchdogs. Behind a look-back, the first turn works out what each tile of a slice begins
// with of which tiles are left.
//
// Grid: one workgroup of 256 invocations for each slice.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state: what others left of each tile; writes base and
// end of tiles, which it has written, and the carry after the window.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, together.
// Bytes moved: nothing on ordinary data; 50 for each tile, or 90, where all tiles are left.

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
#import "lib/tiles/turn.wgsl"

var<workgroup> totals: array<u32, 256>;

// Scans the turn's next tile, and decides what comes next. `number` is the tile's among those that the workgroup scans.
fn scan_tile(lane: u32, slice: u32, number: u32) {
    let begin = workgroupUniformLoad(&next_tile) * TILE;
    let place = place_of(slice);
    let input = place.input + begin * params.input_axis_stride;
    let output = place.output + begin * params.output_axis_stride;
    let count = min(params.length - begin, TILE);
    fold_tile(lane, input, count, false);
    var settled = settle_tile(lane, count, number, false);
    if (together) {
        settled = fold_together(lane, settled);
    } else {
        write_exceptional(lane, input, output, count, number, settled);
    }
    put_tile(lane, output, count, settled);
    workgroupBarrier();
    if (lane == 0u) {
        end_tile(slice);
    }
}

// Behind an absorbing result: each invocation folds the classes of some tiles, then gives each what comes before.
fn scan_classes(lane: u32, slice: u32) {
    let first = workgroupUniformLoad(&next_tile);
    let share = (params.tiles - first + LANES - 1u) / LANES;
    let begin = min(first + lane * share, params.tiles);
    let end = min(begin + share, params.tiles);
    var class_word = 0u;
    for (var tile = begin; tile < end; tile += 1u) {
        class_word = join_classes(class_word, state_word(tile_word(slice, tile) + TILE_CLASS));
    }
    totals[lane] = class_word;
    workgroupBarrier();
    storageBarrier(); // invocation 0 has read the carry that is replaced
    var base = carry.last;
    for (var i = 0u; i < lane; i += 1u) {
        base = combine(base, of_class(totals[i]));
    }
    for (var tile = begin; tile < end; tile += 1u) {
        set_tile_accumulator(slice, tile, TILE_BASE, base);
        base = combine(base, of_class(state_word(tile_word(slice, tile) + TILE_CLASS)));
        set_tile_accumulator(slice, tile, TILE_END, base);
    }
    if (lane == LANES - 1u) {
        end_slice(slice, carry_exceptional(base), params.tiles);
        set_state_word(slice_word(slice) + ABSORBED, first);
    }
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    workgroupBarrier(); // a driver may still be setting workgroup memory to zero
    let slice = workgroup_number(workgroup);
    if (slice >= params.count) {
        return;
    }
    if (lane == 0u) {
        begin_turn(slice);
    }
    begin_workgroup(lane);
    least = SMALL;
    var number = 0u;
    var doing = workgroupUniformLoad(&does);
    while (doing == FINDS || doing == SCANS) {
        if (doing == FINDS) {
            find_bases(lane, slice, workgroupUniformLoad(&next_tile));
            if (lane == 0u) {
                take_up(slice);
            }
        } else {
            scan_tile(lane, slice, number);
            number += 1u;
        }
        doing = workgroupUniformLoad(&does);
    }
    if (doing == ABSORBS) {
        scan_classes(lane, slice);
    }
}
