// What the workgroups of scan_strip_lookback post for each other, column by column: of each block of floats its total,
// unless a part is a tile; where results are exclusive, of each part of floats the last result up to its end; of each
// tile its total; of each span its total, and the fold of all spans up to its end. Of integers, a workgroup's part of a
// tile counts as a tile, and no block or end of a part is posted. A cell's are with its first slice. Needs
// lib/lookback/words.wgsl.

// Of a span.
const SPAN_TOTAL = 0u;
const PREFIX = HALVES;
// As many parts as a tile of floats can have, if it has several.
const MOST_PARTS = 8u;

// Whether a tile of floats has several parts.
fn has_blocks() -> bool {
    return !EXACT && BLOCKS < FANOUT;
}

fn block_record(slice: u32, block: u32) -> u32 {
    return left_word(params.count) + (slice * params.tiles * FANOUT + block) * HALVES;
}

fn end_record(slice: u32, part: u32) -> u32 {
    let first = block_record(select(0u, params.count, has_blocks()), 0u);
    return first + (slice * params.tiles * select(1u, MOST_PARTS, has_blocks()) + part) * HALVES;
}

fn tile_record(slice: u32, tile: u32) -> u32 {
    let first = end_record(select(0u, params.count, !EXACT && params.exclusive == 1u), 0u);
    return first + (slice * params.tiles + tile) * HALVES;
}

fn span_record(slice: u32, span: u32) -> u32 {
    return tile_record(params.count, 0u) + (slice * spans_of_slice() + span) * 2u * HALVES;
}
