// How a workgroup of scan_strip_lookback learns of the blocks and tiles before its part: the invocations share the
// words to look at, and the first WIDTH of them fold a column each, left to right. What others need is posted before
// anything further is waited for. Needs lib/strips/part.wgsl, lib/strips/posts.wgsl, lib/strips/column.wgsl,
// lib/lookback/words.wgsl and lib/lookback/withheld.wgsl.

// What was found of each column: the blocks or tiles before, up to 15 in their order; or spans, the nearest first.
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

fn is_posting(at: Part, slice: u32) -> bool {
    return slice < params.count && !is_withheld(at.number * strip_count() + at.strip);
}

// Leaves the part, since something is missing. Nobody in the strip needs to wait any longer for what follows from it.
fn give_up(lane: u32, strip: u32) {
    if (lane < WIDTH) {
        leave_column(slice_of_column(strip, lane), GIVEN_UP);
    }
}

fn has_given_up(slice: u32) -> bool {
    return state_word(left_word(slice)) == GIVEN_UP;
}

// Reads an accumulator of a column that another workgroup posts, or notes that it is missing.
fn wait_in_strip(slice: u32, word: u32) -> Accumulator {
    var reading = read_accumulator(word);
    for (var look = 0u; look < patience && reading.written == 0u && !has_given_up(slice); look += 1u) {
        reading = read_accumulator(word);
    }
    if (reading.written == 0u) {
        note_missing();
    }
    return reading.value;
}

// The total of the part's block, whose h are on the shelf.
fn block_total(shelf: u32, column: u32, block: u32) -> Accumulator {
    return shelves[shelf][column / lanes * LANES + (FANOUT * block + FANOUT - 1u) * lanes + column % lanes];
}

// Posts the totals of the part's blocks, and finds those of its tile before them.
fn look_at_blocks(lane: u32, at: Part, shelf: u32) -> bool {
    let column = lane % WIDTH;
    let slice = slice_of_column(at.strip, column);
    if (!has_blocks()) {
        return true;
    }
    if (lane < WIDTH && is_posting(at, slice)) {
        for (var block = 0u; block < BLOCKS; block += 1u) {
            publish_accumulator(block_record(slice, at.number * BLOCKS + block), block_total(shelf, column, block));
        }
    }
    if (slice < params.count) {
        for (var block = lane / WIDTH; block < at.within * BLOCKS; block += LANES / WIDTH) {
            found[block * WIDTH + column] = wait_in_strip(slice, block_record(slice, at.tile * FANOUT + block));
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
        if (at.is_last && is_posting(at, slice)) {
            publish_accumulator(tile_record(slice, at.tile), p);
        }
    }
    workgroupBarrier();
    if (slice < params.count) {
        for (var i = lane / WIDTH; i < at.before; i += LANES / WIDTH) {
            found[i * WIDTH + column] = wait_in_strip(slice, tile_record(slice, at.tile - at.before + i));
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
