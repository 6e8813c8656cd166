// What the workgroups of scan_strip_lookback post for each other, column by column: of each block of floats its total
// and, where results are exclusive, the last result up to its end; of each tile its total; of each span its total, and
// the fold of all spans up to its end. Of integers, a workgroup's part of a tile counts as a tile, and no block is
// posted. A cell's are with its first slice. Needs lib/lookback/words.wgsl.

// Of a block.
const BLOCK_TOTAL = 0u;
const BLOCK_END = HALVES;
// Of a span.
const SPAN_TOTAL = 0u;
const PREFIX = HALVES;

fn block_record(slice: u32, block: u32) -> u32 {
    let first = left_word(select(params.count, 0u, EXACT));
    return first + (slice * params.tiles * FANOUT + block) * HALVES * (1u + params.exclusive);
}

fn tile_record(slice: u32, tile: u32) -> u32 {
    return block_record(select(params.count, 0u, EXACT), 0u) + (slice * params.tiles + tile) * HALVES;
}

fn span_record(slice: u32, span: u32) -> u32 {
    return tile_record(params.count, 0u) + (slice * spans_of_slice() + span) * 2u * HALVES;
}
