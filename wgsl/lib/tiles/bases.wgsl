// Turns the tile totals of a slice into what each tile's results begin with, finds the first tile that may be
// exceptional, and writes the carry after the window. Each invocation takes a span of 16 tiles.
//
// Needs lib/tiles/state.wgsl and lib/order/bounds.wgsl; and of the kernel SPANS, how many invocations there are, and
// `ends`, an accumulator for each.

var<workgroup> before_window: Carry;
var<workgroup> s: Accumulator;
var<workgroup> has_s: bool;
var<workgroup> suspect: atomic<u32>;

// All invocations call it. Invocation 0 may read all that is written, and others what was written for each tile.
fn find_bases(lane: u32, slice: u32) {
    least = SMALL;
    if (lane == 0u) {
        before_window = carry_before(slice);
        s = checked(before_window.s);
        has_s = before_window.has_s;
        atomicStore(&suspect, NO_TILE);
    }
    let start = workgroupUniformLoad(&before_window);
    // The window may begin inside a span, whose tiles so far are in c.
    let span_count = (params.tiles + start.tiles + FANOUT - 1u) / FANOUT;
    for (var chunk = 0u; chunk < span_count; chunk += SPANS) {
        let span = chunk + lane;
        let continues = span == 0u && start.tiles > 0u;
        let begin = min(select(span * FANOUT - start.tiles, 0u, span == 0u), params.tiles);
        let end = min((span + 1u) * FANOUT - start.tiles, params.tiles);
        var total = start.c;
        for (var tile = begin; tile < end; tile += 1u) {
            total = append(continues || tile > begin, total, tile_accumulator(slice, tile, TILE_TOTAL));
        }
        ends[lane] = total;
        workgroupBarrier();
        let had_s = has_s;
        workgroupBarrier();
        if (lane == 0u) {
            // Span totals become s, the fold of all spans before.
            for (var i = 0u; i < min(SPANS, span_count - chunk); i += 1u) {
                let before = s;
                let is_full = (chunk + i + 1u) * FANOUT - start.tiles <= params.tiles;
                if (is_full) {
                    s = append(has_s, s, ends[i]);
                    has_s = true;
                } else {
                    // The carry after the window, if the window ends inside a span.
                    let tiles = params.tiles + start.tiles - (chunk + i) * FANOUT;
                    store_carry(carry_after_word(slice), Carry(s, ends[i], s, tiles, has_s));
                }
                ends[i] = before;
            }
        }
        workgroupBarrier();
        let has_spans = had_s || span > 0u;
        var c = start.c;
        for (var tile = begin; tile < end; tile += 1u) {
            let word = tile_word(slice, tile);
            let has_c = continues || tile > begin;
            let present = has_spans || has_c;
            var base = ends[lane];
            if (has_c) {
                base = append(has_spans, base, c);
            }
            let total = tile_accumulator(slice, tile, TILE_TOTAL);
            let p = append(present, base, tile_accumulator(slice, tile, TILE_P));
            let q = combine(p, tile_accumulator(slice, tile, TILE_H));
            let result = combine(q, tile_accumulator(slice, tile, TILE_R));
            set_tile_accumulator(slice, tile, TILE_BASE, base);
            set_tile_accumulator(slice, tile, TILE_END, result);
            if (EXCEPTIONS) {
                let largest = state_word(word + TILE_LARGEST);
                let largest_r = state_word(word + TILE_LARGEST_R);
                let bounds = bounds_of_tile(largest, largest_r, state_word(word + TILE_SMALLEST));
                if (is_suspect(present, base, bounds)) {
                    atomicMin(&suspect, tile);
                }
            }
            c = append(has_c, c, total);
        }
        workgroupBarrier();
    }
    storageBarrier();
    if (lane == 0u) {
        let word = carry_after_word(slice);
        if ((params.tiles + start.tiles) % FANOUT == 0u) {
            store_carry(word, Carry(s, s, s, 0u, true));
        }
        put_accumulator(word + 4u, 1u, tile_accumulator(slice, params.tiles - 1u, TILE_END));
        // After store_carry, which does not write the spare words.
        set_state_word(slice_word(slice) + SUSPECT, atomicLoad(&suspect));
        set_state_word(slice_word(slice) + ABSORBED, NO_TILE);
    }
    storageBarrier(); // other invocations may store the same words
}
