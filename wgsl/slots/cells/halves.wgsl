// Slot <cells>: of a row, an invocation in a strip has a word: two adjacent columns of 16 bits.
// Needs <input>, <output> and <element>.

#import "lib/strips/cell_rows.wgsl"
#import "lib/strips/halves_of_cell.wgsl"

const slices_of_cell = 1u;

// An invocation's slice number `which`.
fn slice_of(strip: u32, beside: u32, which: u32) -> u32 {
    return (strip * lanes + beside) * columns + which;
}

fn load_cells(place: u32, other: u32) -> vec2<u32> {
    return vec2<u32>(input_unit(place >> 1u), 0u);
}

fn store_cells(place: u32, other: u32, has_other: bool, a: Accumulator, b: Accumulator) {
    set_output_unit(place >> 1u, cell_bits(a, b));
}
