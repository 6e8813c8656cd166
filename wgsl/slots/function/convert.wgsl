// Slot <function>: elements of any type as any numeric type; the same bits where the types are the same.
//
// Integers wrap; conversions to floating point round to nearest, ties to even; floating point to integer truncates,
// saturates out of range and gives 0 for NaN. All of it is integer arithmetic, so float64 needs no feature.
// Constants: input_kind, output_kind, input_mantissa_bits, input_exponent_bias, output_mantissa_bits,
// output_exponent_bias.

#import "lib/arithmetic/int64.wgsl"
#import "lib/arithmetic/number.wgsl"

const KIND_COPY = 0u;      // the same type on both sides: the bits as they are
const KIND_BOOL = 1u;
const KIND_UINT = 2u;
const KIND_INT = 3u;
const KIND_FLOAT = 4u;

override input_kind: u32 = 0u;
override input_mantissa_bits: u32 = 23u;
override input_exponent_bias: u32 = 127u;
override output_kind: u32 = 0u;
override output_mantissa_bits: u32 = 23u;
override output_exponent_bias: u32 = 127u;

// An integer's bits, extended to 64.
fn extend(bits: vec2<u32>) -> vec2<u32> {
    if (input_kind == KIND_BOOL) {
        return vec2<u32>(select(1u, 0u, is_zero64(bits)), 0u);
    }
    if (input_kind == KIND_INT && input_log2_bits < 6u) {
        let unused_bits = 32u - min(1u << input_log2_bits, 32u);
        let low = bitcast<u32>(bitcast<i32>(bits.x << unused_bits) >> unused_bits);
        return vec2<u32>(low, bitcast<u32>(bitcast<i32>(low) >> 31u));
    }
    return bits;
}

fn of_element(bits: vec2<u32>) -> vec2<u32> {
    if (input_kind == KIND_COPY) {
        return bits;
    }
    if (input_kind == KIND_FLOAT) {
        let number = number_of_float(bits, 1u << input_log2_bits, input_mantissa_bits, input_exponent_bias);
        if (output_kind == KIND_FLOAT) {
            return float_of_number(number, 1u << output_log2_bits, output_mantissa_bits, output_exponent_bias);
        }
        return integer_of_number(number, 1u << output_log2_bits, output_kind == KIND_INT);
    }
    let integer = extend(bits);
    if (output_kind == KIND_FLOAT) {
        let number = number_of_integer(integer, input_kind == KIND_INT);
        return float_of_number(number, 1u << output_log2_bits, output_mantissa_bits, output_exponent_bias);
    }
    return integer;
}
