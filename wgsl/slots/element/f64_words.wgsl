// Slot <element>: float64 as pairs of u32, where the device has no 64-bit floats. The bits are those of native float64.

#import "lib/arithmetic/float64.wgsl"
#import "lib/arithmetic/words64.wgsl"

override product: bool = false;

fn identity() -> Accumulator {
    return vec2<u32>(0u, select(0u, 0x3ff00000u, product));
}

fn combine(a: Accumulator, b: Accumulator) -> Accumulator {
    if (product) {
        return multiply_f64(a, b);
    }
    return add_f64(a, b);
}

// What lib/order/exceptional.wgsl asks of an element type.
const EXCEPTIONS = true;
const INFINITE = 0x7ff00000u;
const NORMAL = 0x00100000u;
const ONE = 0x3ff00000u;
const EXPONENT_SHIFT = 20u;
const EXPONENT_BIAS = 1023;

// Whether elements but 0 can be too small for the range.
const SMALL_ELEMENTS = true;

// Sizes: magnitudes that keep all bits, as integers, which NaN is larger than.
alias Size = vec2<u32>;

fn size_of(a: Accumulator) -> Size {
    return vec2<u32>(a.x, a.y & 0x7fffffffu);
}

fn of_size(size: Size) -> Accumulator {
    return size;
}

fn smaller(a: Size, b: Size) -> Size {
    return select(b, a, less64(a, b));
}

fn larger(a: Size, b: Size) -> Size {
    return select(a, b, less64(a, b));
}

// Whether a left fold has a zero instead.
fn is_tiny(size: Size) -> bool {
    return !less64(vec2<u32>(0u, NORMAL), size);
}

fn times_zero(a: Accumulator) -> Accumulator {
    return vec2<u32>(0u, select(a.y & 0x80000000u, F64_NAN.y, size_of(a).y >= INFINITE));
}
