// The accumulator of float16 and float32. Every float operation of the canonical order is `combine`.

override product: bool = false;
// Whether to hide the operands from compilers, which could regroup or simplify a chain of float operations.
override opaque: bool = false;

alias Accumulator = f32;

fn identity() -> Accumulator {
    return select(0.0, 1.0, product);
}

fn hidden(a: Accumulator) -> Accumulator {
    if (opaque) {
        return bitcast<f32>(bitcast<u32>(a) ^ params.zero);
    }
    return a;
}

fn combine(a: Accumulator, b: Accumulator) -> Accumulator {
    if (product) {
        return hidden(a) * hidden(b);
    }
    return hidden(a) + hidden(b);
}

fn to_words(a: Accumulator) -> vec2<u32> {
    return vec2<u32>(bitcast<u32>(a), 0u);
}

fn of_words(words: vec2<u32>) -> Accumulator {
    return bitcast<f32>(words.x);
}

// What lib/exceptional.wgsl needs to know of the format.
const EXCEPTIONS = true;
const WORDS = 1u;
const INFINITE = 0x7f800000u;
const NORMAL = 0x00800000u;
const ONE = 0x3f800000u;
const EXPONENT_SHIFT = 23u;
const EXPONENT_BIAS = 127;

#import "lib/sizes_f32.wgsl"
