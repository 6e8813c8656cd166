// Rounds floating-point elements to integers in one of three modes, element by element, in any layout.
//
// Grid: workgroups of 64 invocations; one invocation for each element.
// Bindings: 0 params, 1 input (absent in place), 2 output.
// Constants: flat, input_log2_bits, output_log2_bits; mantissa_bits and exponent_bias, which float64 does not use.
// Bytes moved: each element is read once and written once.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/load_bits.wgsl"
#import "lib/int64.wgsl"
#import "lib/rounding.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = workgroup_number(workgroup) * 64u + lane;
    if (index >= params.count) {
        return;
    }
    let place = place_of(index);
    let bits = load_bits(place.input);
    if (input_log2_bits == 6u) {
        store_bits(place.output, round64(bits));
    } else {
        store_bits(place.output, vec2<u32>(round32(vec4<u32>(bits.x)).x, 0u));
    }
}
