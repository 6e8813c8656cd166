// Turns the tile totals of each slice into what each tile's results begin with, and finds the first tile that may be
// exceptional.
//
// Grid: one workgroup of 64 invocations for each slice; each invocation takes a span of 16 tiles, 64 spans at a time.
// Bindings: 0 params, 3 state: reads what scan_serial_totals left of each tile, writes base and end of every tile, and
// the carry after the window.
// Constants: product, opaque.
// Bytes moved: 16 to 44 read and 8 to 16 written for each tile.

#import "lib/params.wgsl"
#import <element>
#import "lib/order/order.wgsl"
#import "lib/order/exceptional.wgsl"
#import "lib/order/carry.wgsl"
#import "lib/memory/state.wgsl"
#import "lib/tiles/state.wgsl"
#import "lib/order/bounds.wgsl"

const SPANS = 64u;
var<workgroup> ends: array<Accumulator, SPANS>;

#import "lib/tiles/bases.wgsl"

@compute @workgroup_size(SPANS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    workgroupBarrier(); // a driver may still be setting workgroup memory to zero
    let slice = workgroup_number(workgroup);
    if (slice < params.count) {
        if (lane == 0u) {
            before_tiles = carry_before(slice);
        }
        find_bases(lane, slice, 0u);
    }
}
