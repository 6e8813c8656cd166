// Copies memory: the ceiling that benchmarks divide by. No operator runs it.
//
// Which way of copying is fastest depends on the device, so there are several variants: dmlgpu/bench/workloads.py.
// Grid: workgroups of 64 invocations; each invocation copies `units` words or vectors of four words.
// Bindings: 0 params, 1 input, 2 output. params.count is the number of units, a multiple of 64 * `units`.
// Constants: units; stride, the distance between an invocation's units: 1, or 64 so that neighbouring invocations
// read neighbouring units.
// Bytes moved: each byte is read once and written once.

#import "lib/params.wgsl"
#import <unit>

override units: u32 = 1u;
override stride: u32 = 1u;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = workgroup_number(workgroup) * 64u * units + select(lane, lane * units, stride == 1u);
    if (first >= params.count) {
        return;
    }
    if (units == 1u) {
        output_units[first] = input_units[first];
    } else if (units == 4u) {
        // All reads come before the first write, so that they are under way together.
        let a = input_units[first];
        let b = input_units[first + stride];
        let c = input_units[first + 2u * stride];
        let d = input_units[first + 3u * stride];
        output_units[first] = a;
        output_units[first + stride] = b;
        output_units[first + 2u * stride] = c;
        output_units[first + 3u * stride] = d;
    } else {
        for (var i = 0u; i < units; i += 1u) {
            output_units[first + i * stride] = input_units[first + i * stride];
        }
    }
}
