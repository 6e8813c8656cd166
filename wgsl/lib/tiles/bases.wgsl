// Turns the tile totals of a slice, from some tile on, into what each tile's results begin with, finds the first tile
// that may be exceptional, and writes the carry into that tile, or after the window if there is none. Each invocation
// takes a span of 16 tiles. It alone reads again what it has written of them: see lib/memory/state.wgsl.
//
// Needs lib/tiles/state.wgsl and lib/order/bounds.wgsl; and of the kernel SPANS, how many invocations there are, and
// `ends`, an accumulator for each.

// What comes before the first of the tiles, which invocation 0 sets.
var<workgroup> before_tiles: Carry;
var<workgroup> s: Accumulator;
var<workgroup> has_s: bool;
// What comes after the last of the tiles, or into the first that may be exceptional, but for the last result.
var<workgroup> after_tiles: Carry;
var<workgroup> last_result: Accumulator;
var<workgroup> suspect: atomic<u32>;

// Returns what comes before tile `tile` but for the last result, if it is the first from `first` on that may be
// exceptional. The invocation that took the tile's span calls it.
fn carry_into(slice: u32, first: u32, tile: u32) -> Carry {
    var result = before_tiles;
    var t = first;
    let in_span = (result.tiles + tile - first) % FANOUT;
    if (in_span < tile - first) {
        // The first tile of a span: its base is s.
        t = tile - in_span;
        result = Carry(tile_accumulator(slice, t, TILE_BASE), identity(), identity(), 0u, true);
    }
    for (; t < tile; t += 1u) {
        result = carry_on(result, tile_accumulator(slice, t, TILE_TOTAL), result.last);
    }
    return result;
}

// The invocation that takes tile number `number` of those behind `start`.
fn taker_of(number: u32, start: Carry) -> u32 {
    return (number + start.tiles) / FANOUT % SPANS;
}

// Works out base and end of the window's tiles from tile `first` on, of which there is one. All invocations call it.
// Invocation 0 may read the carry and SUSPECT.
fn find_bases(lane: u32, slice: u32, first: u32) {
    least = SMALL;
    let start = workgroupUniformLoad(&before_tiles);
    if (lane == 0u) {
        s = checked(start.s);
        has_s = start.has_s;
        atomicStore(&suspect, NO_TILE);
    }
    // They may begin inside a span, whose tiles so far are in c.
    let count = params.tiles - first;
    let span_count = (count + start.tiles + FANOUT - 1u) / FANOUT;
    for (var chunk = 0u; chunk < span_count; chunk += SPANS) {
        let span = chunk + lane;
        let continues = span == 0u && start.tiles > 0u;
        let begin = first + min(select(span * FANOUT - start.tiles, 0u, span == 0u), count);
        let end = first + min((span + 1u) * FANOUT - start.tiles, count);
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
                let tiles = min(count + start.tiles - (chunk + i) * FANOUT, FANOUT);
                after_tiles = Carry(s, ends[i], s, tiles, has_s);
                if (tiles == FANOUT) {
                    s = append(has_s, s, ends[i]);
                    has_s = true;
                    after_tiles = carry_exceptional(s); // which begins a span, too
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
    let found = atomicLoad(&suspect);
    let behind = min(found, params.tiles);
    if (found != NO_TILE && lane == taker_of(found - first, start)) {
        after_tiles = carry_into(slice, first, found);
    }
    if (behind > first && lane == taker_of(behind - 1u - first, start)) {
        last_result = tile_accumulator(slice, behind - 1u, TILE_END);
    }
    workgroupBarrier();
    storageBarrier(); // invocation 0 may write what others have written
    if (lane == 0u) {
        var after = after_tiles;
        if (behind > first) {
            after.last = last_result;
        }
        store_carry(carry_after_word(slice), after);
        set_state_word(slice_word(slice) + SUSPECT, select(found, behind, first > 0u));
        set_state_word(slice_word(slice) + ABSORBED, NO_TILE);
    }
}
