// Where the elements of strips are that go through workgroup memory, a turn of rows at a time: rows of a few columns,
// without a gap between columns or rows. Needs lib/strips/stretch.wgsl and <cells>.

#import "lib/tiles/turn_stage.wgsl"
#import "lib/strips/runs.wgsl"
#import "lib/strips/turns.wgsl"

const slices_of_cell = 1u;
const NO_SLICE = 0xffffffffu;
// Rows of a turn, and their runs. A stretch has four turns.
override TURN_ROWS: u32 = TURN / (lanes * columns);
override RUNS_OF_TURN: u32 = TURN_ROWS / FANOUT;

// A strip has all columns between two gaps in the order of slices.
fn strip_count() -> u32 {
    return params.count / params.across;
}

fn slice_of(strip: u32, beside: u32, which: u32) -> u32 {
    let column = beside + which * lanes;
    return select(NO_SLICE, strip * params.across + column, column < params.across);
}

// The invocation's first slice, or one that is there.
fn slice_to_read(strip: u32, first: u32) -> u32 {
    return min(first, (strip + 1u) * params.across - 1u);
}

fn parts_of(first: u32) -> u32 {
    return slices_of_cell;
}

fn other_slice(first: u32, second: u32) -> u32 {
    return first;
}

// Elements in the order of memory that are a turn's rows: from `low` of the tensor on, from `place` of the stage on.
struct Stored {
    low: u32,
    place: u32,
    count: u32,
}

// Of the turn from row `row` on, where row 0 of the window begins at `base`. If it is not there, some other element.
fn stored(base: u32, stride: u32, row: u32) -> Stored {
    let first = min(row, params.length - 1u);
    let rows = min(params.length - first, TURN_ROWS);
    if (is_falling(stride)) {
        return Stored(base + (first + rows - 1u) * stride, (TURN_ROWS - rows) * params.across, rows * params.across);
    }
    return Stored(base + first * stride, 0u, rows * params.across);
}

fn is_falling(stride: u32) -> bool {
    return stride >> 31u == 1u;
}

// Where the stage has an element of a turn's row.
fn place_of_row(row: u32, column: u32, stride: u32) -> u32 {
    return select(row, TURN_ROWS - 1u - row, is_falling(stride)) * params.across + column;
}

// The element of the tensor for a place of the stage, or one beside it.
fn element_at(place: u32, at: Stored) -> u32 {
    return at.low + min(max(place, at.place) - at.place, at.count - 1u);
}

// Where the window's first row begins. `place` is that of an invocation's first column.
fn base_of_rows(lane: u32, place: u32) -> u32 {
    return place - min(lane % lanes, params.across - 1u);
}
