// Scans columns of floats, or windows of whole tiles: four adjacent columns at up to eight places an invocation, row by
// row.
//
// For software drivers, and slices that are side by side in memory. There is no barrier: drivers on a CPU would move
// all of an invocation's variables to memory at each. The 8 invocations of a workgroup read a stretch of a row
// together, up to 256 columns wide; a workgroup has several such bands, and takes a block of each in turn, while the
// pages that their rows share are known. A row's last group of four may have fewer columns.
// An exceptional tile is written like others; its column is left to scan_slices from there on.
// Grid: workgroups of 8 invocations; the bands are shared out evenly.
// Bindings: 0 params, 1 input, 2 output, 3 state: 17 words a column.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, vectors, exclusive.
// Bytes moved: one read and one write an element; the state once a block.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import <element>
#import "lib/order/order.wgsl"
#import "lib/order/exceptional.wgsl"
#import "lib/order/carry.wgsl"
#import "lib/bands/groups.wgsl"
#import "lib/bands/four.wgsl"
#import <fours>
#import "lib/bands/columns.wgsl"
#import "lib/bands/block.wgsl"

// Number `j` of the columns that an invocation has of a band; params.count where there is none.
fn column_in(band: u32, lane: u32, j: u32) -> u32 {
    let number = band * BAND + lane + 8u * (j / in_group);
    let group = group_at(number);
    let within = j % in_group;
    return select(params.count, group.first + within, number < group_count() && within < group.count);
}

@compute @workgroup_size(8)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    least = SMALL;
    let bands = (group_count() - 1u) / BAND + 1u;
    let share = (bands - 1u) / params.grid_width + 1u;
    let first = workgroup_number(workgroup) * share;
    let end = min(first + share, bands);
    if (params.resume == 1u) {
        for (var band = first; band < end; band += 1u) {
            for (var j = 0u; j < in_group * vectors; j += 1u) {
                open_window(column_in(band, lane, j));
            }
        }
    }
    for (var k = 0u; k < params.length; k += BLOCK) {
        let i = params.first + k;
        let count = min(BLOCK, params.length - k);
        for (var band = first; band < end; band += 1u) {
            scan_block(k, count, band * BAND + lane);
            for (var j = 0u; j < in_group * vectors; j += 1u) {
                close_block(i, count, k + count == params.length, column_in(band, lane, j));
            }
        }
    }
}
