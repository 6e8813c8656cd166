// Rounds floating-point elements to integers in one of three modes, by integer arithmetic on the bit pattern.
//
// Zeros, infinities and NaN stay as they are, subnormals become zeros of their sign.
// Grid: workgroups of 64 invocations; an invocation an element.
// Bindings: 0 params, 1 input (absent in place), 2 output.
// Constants: flat, input_log2_bits, output_log2_bits; mantissa_bits and exponent_bias of float16 or float32.
// Bytes moved: one read and one write an element.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/load_bits.wgsl"
#import "lib/int64.wgsl"

// Of float16 or float32.
override mantissa_bits: u32 = 23u;
override exponent_bias: u32 = 127u;

const HALF_EVEN = 0u;
const TOWARD_ZERO = 1u;
const HALF_AWAY = 2u;

// float16 and float32.
fn round32(bits: u32) -> u32 {
    let sign = bits & (1u << ((1u << min(input_log2_bits, 5u)) - 1u));
    let magnitude = bits ^ sign;
    let exponent = magnitude >> mantissa_bits;
    let one = exponent_bias << mantissa_bits;
    if (exponent >= exponent_bias + mantissa_bits) {
        return bits;
    }
    if (exponent < exponent_bias) {
        // Below 1: the result is 0 or 1.
        let half = one - (1u << mantissa_bits);
        let up = (params.mode == HALF_EVEN && magnitude > half) || (params.mode == HALF_AWAY && magnitude >= half);
        return sign | select(0u, one, up);
    }
    // The significand's carry runs into the exponent, as it should.
    let fraction_bits = mantissa_bits - (exponent - exponent_bias);
    let half = 1u << (fraction_bits - 1u);
    var rounded = magnitude;
    if (params.mode == HALF_EVEN) {
        rounded += half - 1u + ((magnitude >> fraction_bits) & 1u);
    } else if (params.mode == HALF_AWAY) {
        rounded += half;
    }
    return sign | (rounded & ~((half << 1u) - 1u));
}

// float64, in the same steps, with 52 bits of mantissa of which 20 lie in the high word.
fn round64(bits: vec2<u32>) -> vec2<u32> {
    let sign = vec2<u32>(0u, bits.y & 0x80000000u);
    let magnitude = bits ^ sign;
    let exponent = magnitude.y >> 20u;
    let one = vec2<u32>(0u, 1023u << 20u);
    if (exponent >= 1023u + 52u) {
        return bits;
    }
    if (exponent < 1023u) {
        let half = vec2<u32>(0u, 1022u << 20u);
        let more = less64(half, magnitude);
        let up = (params.mode == HALF_EVEN && more) || (params.mode == HALF_AWAY && (more || all(half == magnitude)));
        return sign | select(vec2<u32>(0u), one, up);
    }
    let fraction_bits = 52u - (exponent - 1023u);
    let half = shift_left64(vec2<u32>(1u, 0u), fraction_bits - 1u);
    let minus_one = vec2<u32>(0xffffffffu, 0xffffffffu);
    var rounded = magnitude;
    if (params.mode == HALF_EVEN) {
        let odd = vec2<u32>(shift_right64(magnitude, fraction_bits).x & 1u, 0u);
        rounded = add64(rounded, add64(add64(half, minus_one), odd));
    } else if (params.mode == HALF_AWAY) {
        rounded = add64(rounded, half);
    }
    return sign | (rounded & ~add64(shift_left64(half, 1u), minus_one));
}

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
        store_bits(place.output, vec2<u32>(round32(bits.x), 0u));
    }
}
