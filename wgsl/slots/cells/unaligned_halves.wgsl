// Slot <cells>: of a row, an invocation in a strip has two adjacent columns of 16 bits, which may begin anywhere in
// memory. Needs <input>, <output> and <element>.

#import "lib/strips/unaligned_rows.wgsl"
#import "lib/strips/halves_of_cell.wgsl"

fn slice_of(strip: u32, beside: u32, which: u32) -> u32 {
    let first = first_slice(strip, beside);
    return select(first + which, NO_SLICE, first == NO_SLICE || which >= slices_there(first));
}

fn parts_of(first: u32) -> u32 {
    return 1u;
}
