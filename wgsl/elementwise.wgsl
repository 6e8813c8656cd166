// Applies a function to elements in any layout: rounds them, or converts them to another type.
//
// Grid: workgroups of 64 invocations; one invocation for each element.
// Bindings: 0 params, 1 input (absent in place), 2 output.
// Constants: flat, input_log2_bits, output_log2_bits; mantissa_bits and exponent_bias of roundings; of conversions
// those of slots/function/convert.wgsl.
// Bytes moved: each element is read once and written once.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/memory/load_bits.wgsl"
#import <function>

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = workgroup_number(workgroup) * 64u + lane;
    if (index >= params.count) {
        return;
    }
    let place = place_of(index);
    store_bits(place.output, of_element(load_bits(place.input)));
}
