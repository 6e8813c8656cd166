// Scratch of the tile kernels: for each slice what earlier windows leave, then for each tile four values.

@group(0) @binding(3) var<storage, read_write> state: array<Accumulator>;

// Of a slice: s, the fold of the spans before this window.
fn slice_span(slice: u32) -> u32 {
    return 2u * slice;
}

// Of a slice: the inclusive result of the last element before this window.
fn slice_end(slice: u32) -> u32 {
    return 2u * slice + 1u;
}

// Of a tile, as scan_tile_totals leaves it: its total, and the p, h and r that make its last result. As scan_carries
// leaves it: TILE_BASE, s + c before the tile, and TILE_END, the inclusive result of its last element.
const TILE_TOTAL = 0u;
const TILE_P = 1u;
const TILE_H = 2u;
const TILE_R = 3u;
const TILE_BASE = 0u;
const TILE_END = 1u;

fn tile_record(slice: u32, tile: u32) -> u32 {
    return 2u * params.count + 4u * (slice * params.tiles + tile);
}
