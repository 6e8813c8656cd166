// Whole columns of a strip, from one tile to the next, up to the first that is exceptional.
// Needs lib/strips/column.wgsl and lib/slices/suspects.wgsl.

// Of each column 1 + the first tile that is exceptional.
var<workgroup> suspects: array<atomic<u32>, 32>;
const NO_SUSPECT = 0xffffffffu;

fn begin_column(slice: u32) -> Column {
    var x: Column;
    x.slice = slice;
    x.carry = fresh_carry();
    if (params.first > 0u) {
        let tile = params.first >> TILE_SHIFT;
        x.carry = fetch_carry(min(slice, params.count - 1u), tile % FANOUT, tile >= FANOUT);
    }
    x.before = x.carry.last;
    return x;
}

fn begin_suspect(suspect: u32, slice: u32) {
    var known = 0u;
    if (EXCEPTIONS && params.first > 0u) {
        known = state_word(column_word(min(slice, params.count - 1u), SUSPECT));
    }
    atomicStore(&suspects[suspect], select(known, NO_SUSPECT, known == 0u));
}

// Says whether the tile is exceptional, which all runs do before a barrier.
fn suspect_tile(suspect: u32, tile: u32, x: ptr<function, Column>) {
    if (is_excessive((*x).excess)) {
        atomicMin(&suspects[suspect], tile + 1u);
    }
}

// Goes on to the next tile. `is_keeper`: the invocation has the tile's last run.
fn close_tile(suspect: u32, tile: u32, is_keeper: bool, x: ptr<function, Column>) {
    if (EXCEPTIONS && is_keeper && tile > 0u && (*x).slice < params.count) {
        if (atomicLoad(&suspects[suspect]) == tile + 1u) {
            keep_suspect_carry((*x).slice, (*x).carry);
        }
    }
    (*x).carry = carry_on((*x).carry, (*x).p, (*x).r[15]);
    (*x).excess = 0u;
}

fn end_column(suspect: u32, x: ptr<function, Column>) {
    if ((*x).slice >= params.count) {
        return;
    }
    let found = atomicLoad(&suspects[suspect]);
    if (EXCEPTIONS) {
        set_state_word(column_word((*x).slice, SUSPECT), select(found, 0u, found == NO_SUSPECT));
    }
    if (params.suspend == 1u && (!EXCEPTIONS || found == NO_SUSPECT)) {
        keep_carry((*x).slice, (*x).carry);
    }
}
