// Slot <element>: native float64. It needs features (shader-f64, and shader-int64 for the casts), and only naga
// compiles it.

override product: bool = false;
// Whether to hide results from compilers, as in lib/arithmetic/accumulate_f32.wgsl.
override opaque: bool = false;

alias Accumulator = f64;

fn identity() -> Accumulator {
    return select(0.0lf, 1.0lf, product);
}

fn combine(a: Accumulator, b: Accumulator) -> Accumulator {
    var result = a + b;
    if (product) {
        result = a * b;
    }
    if (opaque) {
        return bitcast<f64>(bitcast<u64>(result) ^ u64(params.zero));
    }
    return result;
}

fn to_words(a: Accumulator) -> vec2<u32> {
    let bits = bitcast<u64>(a);
    return vec2<u32>(u32(bits), u32(bits >> 32u));
}

fn of_words(words: vec2<u32>) -> Accumulator {
    return bitcast<f64>((u64(words.y) << 32u) | u64(words.x));
}

fn decode(bits: vec2<u32>) -> Accumulator {
    return of_words(bits);
}

fn encode(value: Accumulator) -> vec2<u32> {
    return to_words(value);
}

// What lib/order/exceptional.wgsl needs to know of the format.
const EXCEPTIONS = true;
const WORDS = 2u;
const INFINITE = 0x7ff00000u;
const NORMAL = 0x00100000u;
const ONE = 0x3ff00000u;
const EXPONENT_SHIFT = 20u;
const EXPONENT_BIAS = 1023;

// Whether elements but 0 can be too small for the range.
const SMALL_ELEMENTS = true;

// Sizes: magnitudes that keep all bits. As numbers, by choices that processors have an instruction for; which is left
// of a number and NaN is open.
alias Size = f64;

fn size_of(a: Accumulator) -> Size {
    return abs(a);
}

fn of_size(size: Size) -> Accumulator {
    return size;
}

fn smaller(a: Size, b: Size) -> Size {
    return select(b, a, a < b);
}

fn larger(a: Size, b: Size) -> Size {
    return select(b, a, a > b);
}

// Whether a left fold has a zero instead.
fn is_tiny(size: Size) -> bool {
    return size <= of_words(vec2<u32>(0u, NORMAL));
}

// A zero that compilers do not know.
fn times_zero(a: Accumulator) -> Accumulator {
    return combine(a, of_words(vec2<u32>(params.zero)));
}
