// Empties what scan_lookback hands from workgroup to workgroup, and notes that no tile is left.
//
// Grid: workgroups of 64 invocations; each invocation clears 16 words, and notes one slice.
// Bindings: 0 params, 3 state.
// Constants: none; the element says how long a record is.
// Bytes moved: at most 88 written for each tile.

#import "lib/params.wgsl"
#import <element>
#import "lib/order.wgsl"
#import "lib/exceptional.wgsl"
#import "lib/carry.wgsl"
#import "lib/state.wgsl"
#import "lib/tile_state.wgsl"
#import "lib/bounds.wgsl"
#import "lib/lookback_records.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let number = workgroup_number(workgroup) * 64u + lane;
    let first = header_word() + number * 16u;
    let end = span_record(params.count, 0u);
    for (var word = first; word < min(first + 16u, end); word += 1u) {
        set_state_word(word, 0u);
    }
    if (number < params.count) {
        set_state_word(slice_word(number) + SUSPECT, NO_TILE);
    }
}
