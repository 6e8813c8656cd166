// What tiles begin with behind an absorbing result, where only the classes of their elements count: folds of these are
// exact in any order. Needs lib/tiles/step.wgsl, lib/tiles/state.wgsl and lib/order/classes.wgsl.

// The class of each invocation's tiles.
var<workgroup> class_totals: array<u32, 256>;

// Of the `rest` tiles from `tile` on, each invocation folds the classes of some, then gives each what comes before.
// Returns the last result of its tiles. All invocations call it.
fn find_class_bases(lane: u32, slice: u32, tile: u32, rest: u32) -> Accumulator {
    let share = (rest + LANES - 1u) / LANES;
    let mine = min(tile + lane * share, params.tiles);
    let end = min(mine + share, params.tiles);
    var class_word = 0u;
    for (var t = mine; t < end; t += 1u) {
        class_word = join_classes(class_word, state_word(tile_word(slice, t) + TILE_CLASS));
    }
    class_totals[lane] = class_word;
    workgroupBarrier();
    var base = carry.last;
    for (var i = 0u; i < lane; i += 1u) {
        base = combine(base, of_class(class_totals[i]));
    }
    for (var t = mine; t < end; t += 1u) {
        set_tile_accumulator(slice, t, TILE_BASE, base);
        base = combine(base, of_class(state_word(tile_word(slice, t) + TILE_CLASS)));
        set_tile_accumulator(slice, t, TILE_END, base);
    }
    return base;
}
