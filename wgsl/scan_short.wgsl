// Scans slices of at most 16 elements, one invocation a slice: a single run, which is a left fold.
//
// Grid: workgroups of 64 invocations; an invocation a slice.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state (unused).
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat.
// Bytes moved: one read and one write an element.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/elements.wgsl"
#import "lib/store.wgsl"
#import "lib/order.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let slice = workgroup_number(workgroup) * 64u + lane;
    if (slice >= params.count) {
        return;
    }
    var place = place_of(slice);
    var r = identity();
    for (var i = 0u; i < params.length; i += 1u) {
        let before = r;
        r = append(i > 0u, r, load(place.input));
        if (params.exclusive == 1u) {
            store(place.output, before);
        } else {
            store(place.output, r);
        }
        place.input += params.input_axis_stride;
        place.output += params.output_axis_stride;
    }
}
