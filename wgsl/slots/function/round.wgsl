// Slot <function>: floating-point elements, rounded to integers in one of three modes. Needs input_log2_bits.
//
// By integer arithmetic on bit patterns. Zeros, infinities and NaN stay as they are; what rounds to zero keeps its
// sign.
// Constants: mantissa_bits and exponent_bias, which float64 does not use.

#import "lib/arithmetic/int64.wgsl"

// The format of float16 or float32, for round32.
override mantissa_bits: u32 = 23u;
override exponent_bias: u32 = 127u;

const HALF_EVEN = 0u;
const TOWARD_ZERO = 1u;
const HALF_AWAY = 2u;

// Rounds four elements of float16 or float32, without branches.
fn round32(bits: vec4<u32>) -> vec4<u32> {
    let even = u32(params.mode == HALF_EVEN);
    let to_nearest = select(0xffffffffu, 0u, params.mode == TOWARD_ZERO);
    let sign = bits & vec4<u32>(1u << ((1u << min(input_log2_bits, 5u)) - 1u));
    let magnitude = bits ^ sign;
    let exponent = magnitude >> vec4<u32>(mantissa_bits);
    // Magnitudes from 1 on. A carry out of the significand runs into the exponent, as it should.
    let limited = clamp(exponent, vec4<u32>(exponent_bias), vec4<u32>(exponent_bias + mantissa_bits - 1u));
    let fraction_bits = vec4<u32>(exponent_bias + mantissa_bits) - limited;
    let half = vec4<u32>(1u) << (fraction_bits - vec4<u32>(1u));
    let up = (half & vec4<u32>(to_nearest)) - vec4<u32>(even) + ((magnitude >> fraction_bits) & vec4<u32>(even));
    let large = (magnitude + up) & ~((half << vec4<u32>(1u)) - vec4<u32>(1u));
    // Magnitudes below 1 become 0 or 1: 1 from a half on, or above a half.
    let one = exponent_bias << mantissa_bits;
    let least = (one - (1u << mantissa_bits) + even) | ~to_nearest;
    let small = select(vec4<u32>(0u), vec4<u32>(one), magnitude >= vec4<u32>(least));
    let rounded = select(large, small, exponent < vec4<u32>(exponent_bias));
    // Larger magnitudes are integers, infinities and NaN already.
    return sign | select(rounded, magnitude, exponent >= vec4<u32>(exponent_bias + mantissa_bits));
}

// Rounds a float64 in the same steps. Of its 52 bits of mantissa 20 lie in the high word.
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
        let up = (params.mode != TOWARD_ZERO) & (more | ((params.mode == HALF_AWAY) & all(half == magnitude)));
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

fn of_element(bits: vec2<u32>) -> vec2<u32> {
    if (input_log2_bits == 6u) {
        return round64(bits);
    }
    return vec2<u32>(round32(vec4<u32>(bits.x)).x, 0u);
}

fn of_unit(words: vec4<u32>) -> vec4<u32> {
    if (input_log2_bits == 6u) {
        return vec4<u32>(round64(words.xy), round64(words.zw));
    }
    if (input_log2_bits == 5u) {
        return round32(words);
    }
    let low = round32(words & vec4<u32>(0xffffu));
    return low | (round32(words >> vec4<u32>(16u)) << vec4<u32>(16u));
}
