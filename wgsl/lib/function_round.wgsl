// Slot <function>: floating-point elements, rounded to integers in one of three modes. Needs input_log2_bits.
// Constants: mantissa_bits and exponent_bias, which float64 does not use.

#import "lib/int64.wgsl"
#import "lib/rounding.wgsl"

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
