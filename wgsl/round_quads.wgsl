// Rounds floating-point elements that are neighbours in memory, 16 bytes at a time.
//
// Grid: workgroups of 64 invocations; each invocation rounds four vectors of four words, `stride` vectors from each
// other.
// Bindings: 0 params, 1 input (absent in place), 2 output.
// Constants: input_log2_bits, output_log2_bits; stride: 64, so that neighbouring invocations read neighbouring
// vectors, or 1 on a CPU; mantissa_bits and exponent_bias, which float64 does not use.
// Bytes moved: each element is read once and written once.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/int64.wgsl"
#import "lib/rounding.wgsl"

override input_log2_bits: u32 = 5u;

override stride: u32 = 64u;

const QUADS = 4u;

fn round_quad(words: vec4<u32>) -> vec4<u32> {
    if (input_log2_bits == 6u) {
        return vec4<u32>(round64(words.xy), round64(words.zw));
    }
    if (input_log2_bits == 5u) {
        return round32(words);
    }
    let low = round32(words & vec4<u32>(0xffffu));
    return low | (round32(words >> vec4<u32>(16u)) << vec4<u32>(16u));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    // A vector has 2^shift elements.
    let shift = 7u - input_log2_bits;
    let quads = params.count >> shift;
    let invocation = workgroup_number(workgroup) * 64u;
    let first = select(invocation * QUADS + lane, (invocation + lane) * QUADS, stride == 1u);
    let input = params.input_offset >> shift;
    let output = params.output_offset >> shift;
    // All reads come before the first write, so that they are under way together; none goes past the end.
    let last = quads - 1u;
    let a = input_unit(input + min(first, last));
    let b = input_unit(input + min(first + stride, last));
    let c = input_unit(input + min(first + 2u * stride, last));
    let d = input_unit(input + min(first + 3u * stride, last));
    if (first < quads) {
        set_output_unit(output + first, round_quad(a));
    }
    if (first + stride < quads) {
        set_output_unit(output + first + stride, round_quad(b));
    }
    if (first + 2u * stride < quads) {
        set_output_unit(output + first + 2u * stride, round_quad(c));
    }
    if (first + 3u * stride < quads) {
        set_output_unit(output + first + 3u * stride, round_quad(d));
    }
}
