// Copies memory: the ceiling that benchmarks divide by. No operator runs it.
//
// Which way of copying is fastest depends on the device, so there are several variants: dmlgpu/bench/workloads.py.
// Grid: workgroups of 64 invocations; each invocation copies `units` words or vectors of four words.
// Bindings: 0 params, 1 input, 2 output. params.count is the number of units, a multiple of 64 * `units`.
// Constants: units; stride, the distance between an invocation's units: 1, or 64 so that neighbouring invocations
// read neighbouring units; output_log2_bits (unused).
// Bytes moved: each byte is read once and written once.

#import "lib/params.wgsl"
#import <input>
#import <output>

override units: u32 = 1u;
override stride: u32 = 1u;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = workgroup_number(workgroup) * 64u * units + select(lane, lane * units, stride == 1u);
    if (first >= params.count) {
        return;
    }
    if (units == 1u) {
        set_output_unit(first, input_unit(first));
    } else if (units == 4u) {
        // All reads come before the first write, so that they are under way together.
        let a = input_unit(first);
        let b = input_unit(first + stride);
        let c = input_unit(first + 2u * stride);
        let d = input_unit(first + 3u * stride);
        set_output_unit(first, a);
        set_output_unit(first + stride, b);
        set_output_unit(first + 2u * stride, c);
        set_output_unit(first + 3u * stride, d);
    } else {
        for (var i = 0u; i < units; i += 1u) {
            set_output_unit(first + i * stride, input_unit(first + i * stride));
        }
    }
}
