// Slot <element>: float32 whose sums keep what rounding cuts off: pairs of floats (lo, hi) that stand for hi + lo.
//
// Both are held as bits. hi is hi + lo rounded to nearest; lo is never -0, and +0 where hi is zero, infinite or NaN.
// Only for sums: `product` is there because the kernels name it.

override product: bool = false;

alias Accumulator = vec2<u32>;

fn identity() -> Accumulator {
    return vec2<u32>(0u);
}

fn decode(bits: vec2<u32>) -> Accumulator {
    return vec2<u32>(0u, bits.x);
}

fn encode(value: Accumulator) -> vec2<u32> {
    return vec2<u32>(value.y, 0u);
}

fn to_words(a: Accumulator) -> vec2<u32> {
    return a;
}

fn of_words(words: vec2<u32>) -> Accumulator {
    return words;
}

// One float addition. Its result is hidden from the compiler on every device: who knows that floats are added, and not
// that they are rounded, finds that every error term is zero. `zero` is params.zero, which is costly to read each time.
fn plus(a: u32, b: u32, zero: u32) -> u32 {
    return bitcast<u32>(bitcast<f32>(a) + bitcast<f32>(b)) ^ zero;
}

fn minus(a: u32, b: u32, zero: u32) -> u32 {
    return plus(a, b ^ 0x80000000u, zero);
}

// The rounded sum (y) and what rounding cut off (x), for |a| >= |b| or a = 0. Exact unless the sum overflows.
fn ordered_two_sum(a: u32, b: u32, zero: u32) -> vec2<u32> {
    let sum = plus(a, b, zero);
    return vec2<u32>(minus(b, minus(sum, a, zero), zero), sum);
}

// The same in any order. Dekker's way behind a comparison and not Knuth's, whose second step can overflow.
fn two_sum(a: u32, b: u32, zero: u32) -> vec2<u32> {
    let ordered = (a & 0x7fffffffu) >= (b & 0x7fffffffu);
    return ordered_two_sum(select(b, a, ordered), select(a, b, ordered), zero);
}

fn is_infinite_or_nan(a: u32) -> bool {
    return (a & 0x7f800000u) == 0x7f800000u;
}

// The sum of two pairs by Joldes, Muller and Popescu's AccurateDWPlusDW: relative error below 3 x 2^-48 / (1 - 2^-22).
fn combine(a: Accumulator, b: Accumulator) -> Accumulator {
    let zero = params.zero;
    let s = two_sum(a.y, b.y, zero);
    let t = two_sum(a.x, b.x, zero);
    let v = ordered_two_sum(s.y, plus(s.x, t.y, zero), zero);
    let z = ordered_two_sum(v.y, plus(t.x, v.x, zero), zero);
    // Behind an overflow the error terms are infinite or NaN: the first sum that is not finite is the result.
    var hi = select(z.y, v.y, is_infinite_or_nan(v.y));
    // And -0 + -0 is -0, which + 0 would end.
    hi = select(hi, s.y, is_infinite_or_nan(s.y) | (((s.y | z.y) << 1u) == 0u));
    let no_lo = is_infinite_or_nan(hi) | ((z.x << 1u) == 0u);
    return vec2<u32>(select(z.x, 0u, no_lo), hi);
}

// What lib/order/exceptional.wgsl needs to know of the format.
const EXCEPTIONS = true;
const WORDS = 2u;
const INFINITE = 0x7f800000u;
const NORMAL = 0x00800000u;
const ONE = 0x3f800000u;
const EXPONENT_SHIFT = 23u;
const EXPONENT_BIAS = 127;

#import "lib/arithmetic/no_sizes.wgsl"
