// Scratch of the tile kernels: for each slice what earlier windows leave, then for each tile four values.

@group(0) @binding(3) var<storage, read_write> state: array<Accumulator>;

// Of a slice: s, the fold of the spans so far; the inclusive result of the last element so far; and the same for the
// last element before this window.
const SLICE_SPAN = 0u;
const SLICE_END = 1u;
const SLICE_BEFORE = 2u;

fn slice_record(slice: u32) -> u32 {
    return 3u * slice;
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
    return 3u * params.count + 4u * (slice * params.tiles + tile);
}
