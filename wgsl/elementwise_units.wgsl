// Applies a function to elements that are neighbours in memory, a word or a vector of four words at a time: rounds
// them, or copies them. Copies are the ceiling that benchmarks divide by; no operator runs them.
//
// Which way of copying is fastest depends on the device, so there are several: dmlgpu/bench/workloads.py.
// Grid: workgroups of 64 invocations; each invocation takes `units` words or vectors, `stride` of them from each other.
// Bindings: 0 params, 1 input (absent in place), 2 output.
// Constants: input_log2_bits, output_log2_bits; units: 1, 4 or 16; stride: 64, so that neighbouring invocations read
// neighbouring units, or 1, as suits a CPU; mantissa_bits and exponent_bias of roundings.
// Bytes moved: each element is read once and written once.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import <function>

override units: u32 = 4u;
override stride: u32 = 64u;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    // A unit has 2^shift elements.
    let shift = UNIT_LOG2_BITS - input_log2_bits;
    let count = params.count >> shift;
    let first = workgroup_number(workgroup) * 64u * units + select(lane, lane * units, stride == 1u);
    let input = params.input_offset >> shift;
    let output = params.output_offset >> shift;
    if (units != 4u) {
        for (var i = 0u; i < units; i += 1u) {
            let place = first + i * stride;
            if (place < count) {
                set_output_unit(output + place, of_unit(input_unit(input + place)));
            }
        }
        return;
    }
    // All reads come before the first write, so that they are under way together; none goes past the end.
    let last = count - 1u;
    let a = input_unit(input + min(first, last));
    let b = input_unit(input + min(first + stride, last));
    let c = input_unit(input + min(first + 2u * stride, last));
    let d = input_unit(input + min(first + 3u * stride, last));
    if (first < count) {
        set_output_unit(output + first, of_unit(a));
    }
    if (first + stride < count) {
        set_output_unit(output + first + stride, of_unit(b));
    }
    if (first + 2u * stride < count) {
        set_output_unit(output + first + 2u * stride, of_unit(c));
    }
    if (first + 3u * stride < count) {
        set_output_unit(output + first + 3u * stride, of_unit(d));
    }
}
