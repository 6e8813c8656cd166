// How a workgroup of scan_strip_lookback learns of the blocks and tiles before its part: the invocations share the
// words to look at, and the first WIDTH of them fold a column each, left to right. What others need is posted before
// anything further is waited for. Needs lib/strips/part.wgsl, lib/strips/posts.wgsl,
// lib/strips/column.wgsl, lib/lookback/waiting.wgsl and lib/lookback/withheld.wgsl.

// What was found: of each column 16 blocks or tiles, or fewer spans, the nearest first.
var<workgroup> found: array<Accumulator, 256>;
// Of each column: the fold of its tile, or of its span, up to the end of the part.
var<workgroup> total_of: array<Accumulator, 16>;
var<workgroup> verdict: u32;

// Whether everything was found since it was last forgotten. All invocations call it.
fn is_complete(lane: u32) -> bool {
    workgroupBarrier();
    if (lane == 0u) {
        verdict = u32(is_missing());
    }
    return workgroupUniformLoad(&verdict) == 0u;
}

fn is_posting(lane: u32, at: Part, slice: u32) -> bool {
    return lane < WIDTH && slice < params.count && !is_withheld(at.number * strip_count() + at.strip);
}

// The total of the part's block, whose h are on the shelf.
fn block_total(shelf: u32, column: u32, block: u32) -> Accumulator {
    return shelves[shelf][column / lanes * LANES + (FANOUT * block + FANOUT - 1u) * lanes + column % lanes];
}

// Posts the totals of the part's blocks, and finds those of its tile before them.
fn look_at_blocks(lane: u32, at: Part, shelf: u32) -> bool {
    let column = lane % WIDTH;
    let slice = slice_of_column(at.strip, column);
    if (EXACT) {
        return true;
    }
    if (is_posting(lane, at, slice)) {
        for (var block = 0u; block < BLOCKS; block += 1u) {
            let word = block_record(slice, at.number * BLOCKS + block);
            publish_accumulator(word + BLOCK_TOTAL, block_total(shelf, column, block));
        }
    }
    if (slice < params.count) {
        for (var block = lane / WIDTH; block < at.within * BLOCKS; block += LANES / WIDTH) {
            found[block * WIDTH + column] = wait_for(block_record(slice, at.tile * FANOUT + block) + BLOCK_TOTAL);
        }
    }
    return is_complete(lane);
}

// Folds the tile's blocks, posts its total if this is its last part, and finds those of the span's tiles before it.
fn look_at_tiles(lane: u32, at: Part, shelf: u32) -> bool {
    let column = lane % WIDTH;
    let slice = slice_of_column(at.strip, column);
    if (lane < WIDTH) {
        let blocks = at.within * BLOCKS;
        var p = identity();
        for (var block = 0u; block < blocks; block += 1u) {
            p = append(block > 0u, p, found[block * WIDTH + column]);
        }
        p_of[column] = p;
        for (var block = 0u; block < BLOCKS; block += 1u) {
            p = append(blocks + block > 0u, p, block_total(shelf, column, block));
        }
        total_of[column] = p;
        if (EXACT && slice < params.count) {
            // For scan_tiles, should the part be left.
            put_parts(slice, tile_word(slice, at.tile) + TILE_TOTAL, params.tiles * TILE_WORDS, p);
            mark_cell(slice, at.tile, 0u);
        }
        if (at.is_last && is_posting(lane, at, slice)) {
            publish_accumulator(tile_record(slice, at.tile), p);
        }
    }
    workgroupBarrier();
    if (slice < params.count) {
        for (var i = lane / WIDTH; i < at.before; i += LANES / WIDTH) {
            found[i * WIDTH + column] = wait_for(tile_record(slice, at.tile - at.before + i));
        }
    }
    return is_complete(lane);
}

// Says of a part of integers whether it is written.
fn mark_cell(slice: u32, tile: u32, mark: u32) {
    for (var part = 0u; part < parts_of(slice); part += 1u) {
        set_state_word(tile_word(slice + part, tile) + TILE_CLASS, mark);
    }
}
