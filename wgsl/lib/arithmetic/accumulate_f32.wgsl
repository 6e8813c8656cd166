// The accumulator of float16 and float32: the bits of a float32. Every float operation of the canonical order is
// `combine`, and floats are nowhere else: compilers with fast math, as Metal's, drop choices whose one side is NaN or
// infinite, and may flush a subnormal number that is only copied.

override product: bool = false;
// Whether to hide results from compilers, which could regroup or simplify a chain of float operations, or conclude that
// a result is not NaN.
override opaque: bool = false;

alias Accumulator = u32;

fn identity() -> Accumulator {
    return select(0u, ONE, product);
}

fn combine(a: Accumulator, b: Accumulator) -> Accumulator {
    var result = 0u;
    if (product) {
        result = bitcast<u32>(bitcast<f32>(a) * bitcast<f32>(b));
    } else {
        result = bitcast<u32>(bitcast<f32>(a) + bitcast<f32>(b));
    }
    return select(result, result ^ params.zero, opaque);
}

fn to_words(a: Accumulator) -> vec2<u32> {
    return vec2<u32>(a, 0u);
}

fn of_words(words: vec2<u32>) -> Accumulator {
    return words.x;
}

// What lib/order/exceptional.wgsl needs to know of the format.
const EXCEPTIONS = true;
const WORDS = 1u;
const INFINITE = 0x7f800000u;
const NORMAL = 0x00800000u;
const ONE = 0x3f800000u;
const EXPONENT_SHIFT = 23u;
const EXPONENT_BIAS = 127;

// Sizes: magnitudes that keep all bits, of float32. As integers, which NaN is larger than.

alias Size = u32;

fn size_of(a: Accumulator) -> Size {
    return a & 0x7fffffffu;
}

fn of_size(size: Size) -> Accumulator {
    return size;
}

fn smaller(a: Size, b: Size) -> Size {
    return min(a, b);
}

fn larger(a: Size, b: Size) -> Size {
    return max(a, b);
}

// Whether a left fold has a zero instead.
fn is_tiny(size: Size) -> bool {
    return size <= NORMAL;
}

// A zero that compilers do not know.
fn times_zero(a: Accumulator) -> Accumulator {
    return combine(a, params.zero);
}
