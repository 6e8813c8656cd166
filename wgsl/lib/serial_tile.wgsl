// Which tile is whose, where an invocation has a tile.

const LANES = 8u;

struct TilePlace {
    slice: u32,
    tile: u32,
}

// Neighbours take tiles of slices that are neighbours in memory, else tiles that follow one another.
fn tile_of(number: u32) -> TilePlace {
    if (params.side_by_side == 1u) {
        return TilePlace(number % params.count, number / params.count);
    }
    return TilePlace(number / params.tiles, number % params.tiles);
}
