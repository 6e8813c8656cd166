// Says which tile an invocation takes, where each takes one. Needs lib/params.wgsl and lib/order/order.wgsl.

const LANES = 8u;

struct SerialTile {
    slice: u32,
    tile: u32,
    count: u32,     // elements
    place: Place,   // of the first
}

// Neighbouring invocations take the same tile of slices that are neighbours in memory, else tiles that follow each
// other.
fn tile_of(number: u32) -> SerialTile {
    var slice = number / params.tiles;
    var tile = number % params.tiles;
    if (params.side_by_side == 1u) {
        slice = number % params.count;
        tile = number / params.count;
    }
    let begin = tile * TILE;
    var place = place_of(slice);
    place.input += begin * params.input_axis_stride;
    place.output += begin * params.output_axis_stride;
    return SerialTile(slice, tile, min(params.length - begin, TILE), place);
}
