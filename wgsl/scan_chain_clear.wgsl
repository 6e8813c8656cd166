// Empties the ticket and the records of scan_chain, and keeps the carries between windows.
//
// Grid: workgroups of 64 invocations; each invocation clears 16 words.
// Bindings: 0 params, 3 state.
// Constants: none; the element says how long a record is.
// Bytes moved: at most 52 written for each tile.

#import "lib/params.wgsl"
#import <element>
#import "lib/order.wgsl"
#import "lib/exceptional.wgsl"
#import "lib/carry.wgsl"
#import "lib/state_atomic.wgsl"
#import "lib/chain_records.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = (workgroup_number(workgroup) * 64u + lane) * 16u;
    let end = record_word(params.count * params.tiles);
    let records = record_word(0u);
    for (var word = first; word < min(first + 16u, end); word += 1u) {
        let in_carries = word >= HEADER_WORDS && word < records;
        if (!in_carries || (word - HEADER_WORDS) % CARRY_WORDS == CARRY_SPARE) {
            set_state_word(word, 0u);
        }
    }
}
