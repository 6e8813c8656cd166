// Slot <tile>: a tile by 256 invocations, each of which reads and writes its own run of 16 elements.

#import "lib/tiles/fold.wgsl"

// The invocation's run of a tile of `count` elements.
fn load_lane(lane: u32, input: u32, count: u32) -> Run {
    // Beyond the end of the slice some element is read again, and its results are without meaning.
    let first = min(lane * LANE_ELEMENTS, count - 1u);
    return load_run(input + first * params.input_axis_stride, params.input_axis_stride, min(count - first, 16u));
}

fn store_lane(lane: u32, output: u32, count: u32, run: Run) {
    let first = lane * LANE_ELEMENTS;
    let stride = params.output_axis_stride;
    store_run(output + first * stride, stride, count - min(first, count), run);
}

// A loop, which drivers on CPUs compile faster.
fn fold_blocks(lane: u32) -> Folds {
    let count = select(lane / FANOUT, FANOUT, lane == 0u);
    var p = shelves[0][FANOUT - 1u];
    for (var block = 1u; block < count; block += 1u) {
        p = combine(p, shelves[0][block * FANOUT + FANOUT - 1u]);
    }
    return Folds(checked(p), checked(p));
}
