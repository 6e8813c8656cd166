// Scans slices of at most 16 elements: each is a single run, which is a left fold.
//
// Grid: workgroups of 64 invocations; one invocation for each slice.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state (unused).
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, slice_length.
// Bytes moved: each element is read once and written once.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/elements.wgsl"
#import "lib/order.wgsl"
#import "lib/exceptional.wgsl"
#import "lib/run.wgsl"
#import <reads>
#import <writes>

// params.length if that is worth a pipeline of its own, where compilers leave out what a slice does not have; else 0.
override slice_length: u32 = 0u;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let slice = workgroup_number(workgroup) * 64u + lane;
    if (slice >= params.count) {
        return;
    }
    var count = slice_length;
    if (slice_length == 0u) {
        count = params.length;
    }
    let place = place_of(slice);
    let results = left_fold_run(load_run(place.input, params.input_axis_stride, count));
    var run = results;
    if (params.exclusive == 1u) {
        run = shifted_run(identity(), results);
    }
    store_run(place.output, params.output_axis_stride, count, run);
}
