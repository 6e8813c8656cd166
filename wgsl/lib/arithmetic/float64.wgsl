// IEEE-754 binary64 as pairs of u32, low word first: sum and product, rounded to nearest, ties to even, subnormals
// included. A NaN that comes out is a quiet one, always the same. Integer arithmetic only: no compiler's rules for
// floats and no device's flushing of subnormals apply. docs/float64.md has the reasoning.
// `|` and `&` instead of `||` and `&&`, which branch: SwiftShader never finishes compiling kernels full of those.

#import "lib/arithmetic/int64.wgsl"

const F64_SIGN = 0x80000000u;
const F64_INFINITY = vec2<u32>(0u, 0x7ff00000u);
const F64_NAN = vec2<u32>(0u, 0x7ff80000u);
const F64_SPECIAL = 2047u;     // the exponent field of infinities and NaN

fn f64_field(a: vec2<u32>) -> u32 {
    return (a.y >> 20u) & F64_SPECIAL;
}

fn f64_magnitude(a: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(a.x, a.y & ~F64_SIGN);
}

// The significand of a finite number, an integer below 2^53: magnitude = significand * 2^(max(field, 1) - 1075).
fn f64_significand(a: vec2<u32>, field: u32) -> vec2<u32> {
    return vec2<u32>(a.x, (a.y & 0xfffffu) | select(0x100000u, 0u, field == 0u));
}

// a / 2^n, with a sticky lowest bit: set as well if any bit that is cut off is set. An n above 63 counts as 63.
fn shift_right_sticky64(a: vec2<u32>, n: u32) -> vec2<u32> {
    let m = min(n, 63u) & 31u;
    let kept = a >> vec2<u32>(m);
    let cut = (a << vec2<u32>(1u)) << vec2<u32>(31u - m);
    if (n < 32u) {
        return vec2<u32>(kept.x | cut.y | select(0u, 1u, cut.x != 0u), kept.y);
    }
    return vec2<u32>(kept.y | select(0u, 1u, (a.x | cut.y) != 0u), 0u);
}

fn multiply_words(a: u32, b: u32) -> vec2<u32> {
    return vec2<u32>(a * b, multiply_high(a, b));
}

// a * b / 2^64, with a sticky lowest bit.
fn multiply_high_sticky64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = multiply_words(a.x, b.x);
    let middle = add64(multiply_words(a.x, b.y), vec2<u32>(low.y, 0u));
    let cross = add64(multiply_words(a.y, b.x), vec2<u32>(middle.x, 0u));
    let high = add64(add64(multiply_words(a.y, b.y), vec2<u32>(middle.y, 0u)), vec2<u32>(cross.y, 0u));
    return vec2<u32>(high.x | select(0u, 1u, (low.x | cross.x) != 0u), high.y);
}

// The number nearest to significand * 2^(exponent - 1086), so that `exponent` is the exponent field where bit 63 of the
// significand is set. Bit 0 may be sticky; if bits below it are missing, bit 62 or 63 is set or the exponent below 1.
fn f64_rounded(sign: u32, exponent: i32, significand: vec2<u32>) -> vec2<u32> {
    if (is_zero64(significand)) {
        return vec2<u32>(0u, sign);
    }
    // Up to bit 63, but not below the least exponent, 1, where subnormals have less than 53 digits.
    let left = min(63 - i32(top_bit64(significand)), exponent - 1);
    var scaled: vec2<u32>;
    if (left >= 0) {
        scaled = shift_left64(significand, u32(left));
    } else {
        scaled = shift_right_sticky64(significand, u32(-left));
    }
    let field = exponent - left;
    if (field >= i32(F64_SPECIAL)) {
        return vec2<u32>(F64_INFINITY.x, F64_INFINITY.y | sign);
    }
    let quotient = vec2<u32>((scaled.x >> 11u) | (scaled.y << 21u), scaled.y >> 11u);
    let up = select(0u, 1u, (scaled.x & 0x7ffu) + (quotient.x & 1u) > 0x400u);
    // The hidden bit, or a carry out of rounding, adds one to the exponent field.
    return add64(vec2<u32>(up, sign | (u32(field - 1) << 20u)), quotient);
}

fn add_f64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let swap = less64(f64_magnitude(a), f64_magnitude(b));
    let large = select(a, b, swap);
    let small = select(b, a, swap);
    let field = f64_field(large);
    if (field == F64_SPECIAL) {
        let opposite_infinities = all((large ^ small) == vec2<u32>(0u, F64_SIGN));
        return select(large, F64_NAN, opposite_infinities | less64(F64_INFINITY, f64_magnitude(large)));
    }
    // Ten bits more than the significands have are enough: where the smaller one loses others, it is so much smaller
    // that at most one leading digit cancels.
    let small_field = f64_field(small);
    let distance = max(field, 1u) - max(small_field, 1u);
    var term = shift_right_sticky64(shift_left64(f64_significand(small, small_field), 10u), distance);
    if (((a.y ^ b.y) & F64_SIGN) != 0u) {
        term = negate64(term);
    }
    let total = add64(shift_left64(f64_significand(large, field), 10u), term);
    // Numbers that cancel give +0; -0 only comes from -0 and -0.
    let sign = select(large.y, a.y & b.y, is_zero64(total)) & F64_SIGN;
    return f64_rounded(sign, i32(max(field, 1u)) + 1, total);
}

fn multiply_f64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let sign = (a.y ^ b.y) & F64_SIGN;
    let a_field = f64_field(a);
    let b_field = f64_field(b);
    if (max(a_field, b_field) == F64_SPECIAL) {
        let a_magnitude = f64_magnitude(a);
        let b_magnitude = f64_magnitude(b);
        let not_a_number = less64(F64_INFINITY, a_magnitude) | less64(F64_INFINITY, b_magnitude);
        let zero_times_infinity = is_zero64(a_magnitude) | is_zero64(b_magnitude);
        return select(vec2<u32>(F64_INFINITY.x, F64_INFINITY.y | sign), F64_NAN, not_a_number | zero_times_infinity);
    }
    // Both up to bit 63, subnormals too, so that the product's high words hold all digits that count.
    let a_significand = f64_significand(a, a_field);
    let b_significand = f64_significand(b, b_field);
    let a_zeros = 63u - top_bit64(a_significand);
    let b_zeros = 63u - top_bit64(b_significand);
    let high = multiply_high_sticky64(shift_left64(a_significand, a_zeros), shift_left64(b_significand, b_zeros));
    let exponent = i32(max(a_field, 1u) + max(b_field, 1u)) - i32(a_zeros + b_zeros) - 1000;
    return f64_rounded(sign, exponent, high);
}
