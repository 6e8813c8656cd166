// A block of a band, by one invocation, and what the next one begins with. Needs lib/bands/columns.wgsl and
// lib/order/carry.wgsl.

// A block of the columns, from group `number` on: `count` rows from row `k` of the window on, 16 runs of 16 rows.
fn scan_block(k: u32, count: u32, number: u32) {
    let goes_on = params.first + k > 0u;
    var has_q = goes_on;
    var x0 = begin_columns(k, number);
    var x1 = x0;
    var x2 = x0;
    var x3 = x0;
    var x4 = x0;
    var x5 = x0;
    var x6 = x0;
    var x7 = x0;
    if (vectors > 1u) {
        x1 = begin_columns(k, number + 8u);
    }
    if (vectors > 2u) {
        x2 = begin_columns(k, number + 16u);
        x3 = begin_columns(k, number + 24u);
    }
    if (vectors > 4u) {
        x4 = begin_columns(k, number + 32u);
        x5 = begin_columns(k, number + 40u);
        x6 = begin_columns(k, number + 48u);
        x7 = begin_columns(k, number + 56u);
    }
    for (var done = 0u; done < count; done += FANOUT) {
        for (var row = done; row < min(done + FANOUT, count); row += 1u) {
            take_row(row, row > done, has_q, &x0);
            if (vectors > 1u) {
                take_row(row, row > done, has_q, &x1);
            }
            if (vectors > 2u) {
                take_row(row, row > done, has_q, &x2);
                take_row(row, row > done, has_q, &x3);
            }
            if (vectors > 4u) {
                take_row(row, row > done, has_q, &x4);
                take_row(row, row > done, has_q, &x5);
                take_row(row, row > done, has_q, &x6);
                take_row(row, row > done, has_q, &x7);
            }
        }
        close_columns(done >> RUN_SHIFT, has_q, goes_on, &x0);
        if (vectors > 1u) {
            close_columns(done >> RUN_SHIFT, has_q, goes_on, &x1);
        }
        if (vectors > 2u) {
            close_columns(done >> RUN_SHIFT, has_q, goes_on, &x2);
            close_columns(done >> RUN_SHIFT, has_q, goes_on, &x3);
        }
        if (vectors > 4u) {
            close_columns(done >> RUN_SHIFT, has_q, goes_on, &x4);
            close_columns(done >> RUN_SHIFT, has_q, goes_on, &x5);
            close_columns(done >> RUN_SHIFT, has_q, goes_on, &x6);
            close_columns(done >> RUN_SHIFT, has_q, goes_on, &x7);
        }
        has_q = true;
    }
    end_columns(number, &x0);
    if (vectors > 1u) {
        end_columns(number + 8u, &x1);
    }
    if (vectors > 2u) {
        end_columns(number + 16u, &x2);
        end_columns(number + 24u, &x3);
    }
    if (vectors > 4u) {
        end_columns(number + 32u, &x4);
        end_columns(number + 40u, &x5);
        end_columns(number + 48u, &x6);
        end_columns(number + 56u, &x7);
    }
}

// What one column's first block of a window begins with, from the carry, which may be that of another kernel's piece.
fn open_window(column: u32) {
    if (column >= params.count) {
        return;
    }
    let tile = params.first >> TILE_SHIFT;
    let carry = fetch_carry(column, flags_before(tile));
    keep(column, PREFIX, base_of(carry));
    keep(column, LAST, carry.last);
}

// What one column's next block begins with, after the block from element `i` on, whose state end_columns has left.
fn close_block(i: u32, count: u32, is_last: bool, column: u32) {
    if (column >= params.count) {
        return;
    }
    let tile = i >> TILE_SHIFT;
    let block = (i >> BLOCK_SHIFT) % FANOUT;
    let ends = block == FANOUT - 1u && count == BLOCK;
    var carry = fresh_carry();
    var suspect = 0u;
    if (tile > 0u) {
        carry = fetch_carry(column, flags_before(tile));
        suspect = state_word(column_word(column, SUSPECT));
    }
    if ((ends || is_last) && suspect == 0u) {
        if (is_excessive(state_word(column_word(column, EXCESS)))) {
            suspect = tile + 1u;
            keep_suspect_carry(column, carry);
        }
        set_state_word(column_word(column, SUSPECT), suspect);
    }
    let p = append(block > 0u, fetch(column, FINISHED), fetch(column, TOTAL));
    if (ends) {
        let next = carry_on(carry, p, fetch(column, LAST));
        if (suspect == 0u) {
            keep_carry(column, next);
        }
        keep(column, PREFIX, base_of(next));
    } else {
        keep(column, FINISHED, p);
        keep(column, PREFIX, append(has_base(carry), base_of(carry), p));
    }
}
