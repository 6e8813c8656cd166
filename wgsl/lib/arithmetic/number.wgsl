// Numbers between formats: a kind, a sign, and significand * 2^exponent. Needs lib/arithmetic/int64.wgsl.

const FINITE = 0u;
const INFINITE = 1u;
const NOT_A_NUMBER = 2u;

struct Number {
    kind: u32,
    negative: bool,
    significand: vec2<u32>,
    exponent: i32,
}

fn number_of_integer(bits: vec2<u32>, is_signed: bool) -> Number {
    let negative = is_signed & ((bits.y >> 31u) == 1u);
    return Number(FINITE, negative, select(bits, negate64(bits), negative), 0);
}

fn number_of_float(bits: vec2<u32>, width: u32, mantissa_bits: u32, bias: u32) -> Number {
    let negative = (shift_right64(bits, width - 1u).x & 1u) == 1u;
    let top = shift_left64(vec2<u32>(1u, 0u), mantissa_bits);
    let mantissa = bits & add64(top, vec2<u32>(0xffffffffu, 0xffffffffu));
    let field = shift_right64(bits, mantissa_bits).x & (2u * bias + 1u);
    if (field == 2u * bias + 1u) {
        return Number(select(NOT_A_NUMBER, INFINITE, is_zero64(mantissa)), negative, vec2<u32>(0u), 0);
    }
    let significand = select(mantissa | top, mantissa, field == 0u);
    return Number(FINITE, negative, significand, i32(max(field, 1u)) - i32(bias + mantissa_bits));
}

// To nearest, ties to even, subnormals included.
fn float_of_number(number: Number, width: u32, mantissa_bits: u32, bias: u32) -> vec2<u32> {
    var sign = vec2<u32>(0u);
    if (number.negative) {
        sign = shift_left64(vec2<u32>(1u, 0u), width - 1u);
    }
    let infinity = shift_left64(vec2<u32>(2u * bias + 1u, 0u), mantissa_bits);
    if (number.kind == NOT_A_NUMBER) {
        return sign | infinity | shift_left64(vec2<u32>(1u, 0u), mantissa_bits - 1u);
    }
    if (number.kind == INFINITE) {
        return sign | infinity;
    }
    if (is_zero64(number.significand)) {
        return sign;
    }
    // `field` counts the binades from the subnormals on, which share theirs with the first normals.
    let leading = i32(top_bit64(number.significand)) + number.exponent;
    let field = max(leading + i32(bias), 1);
    if (field > i32(2u * bias)) {
        return sign | infinity;
    }
    let shift = field - i32(bias + mantissa_bits) - number.exponent;
    var significand = shift_left64(number.significand, u32(max(-shift, 0)));
    if (shift > 0) {
        significand = shift_right_round64(number.significand, u32(shift));
    }
    // The hidden bit, or a carry out of rounding, adds one to the exponent field.
    return sign | add64(shift_left64(vec2<u32>(u32(field - 1), 0u), mantissa_bits), significand);
}

// Truncates, saturates to the type's limits, NaN gives 0.
fn integer_of_number(number: Number, width: u32, is_signed: bool) -> vec2<u32> {
    if (number.kind == NOT_A_NUMBER) {
        return vec2<u32>(0u);
    }
    // The largest magnitude on the number's side of 0.
    var limit = shift_right64(vec2<u32>(0xffffffffu, 0xffffffffu), 64u - width);
    if (is_signed) {
        limit = shift_right64(limit, 1u);
        if (number.negative) {
            limit = add64(limit, vec2<u32>(1u, 0u));
        }
    } else if (number.negative) {
        limit = vec2<u32>(0u);
    }
    var magnitude = limit;
    if (number.kind == FINITE) {
        if (is_zero64(number.significand)) {
            magnitude = vec2<u32>(0u);
        } else if (i32(top_bit64(number.significand)) + number.exponent < 64) {
            let up = shift_left64(number.significand, u32(max(number.exponent, 0)));
            let down = shift_right64(number.significand, u32(max(-number.exponent, 0)));
            let truncated = select(down, up, number.exponent > 0);
            magnitude = select(truncated, limit, less64(limit, truncated));
        }
    }
    return select(magnitude, negate64(magnitude), number.negative);
}
