// Slot <element>: the running maximum of elements of 8, 16 and 32 bits. Floats are compared as by IEEE 754's maximum: 0
// is larger than -0, and NaN than every number. A maximum never rounds, so any order of them has the same bits.
//
// An accumulator is a key: an element's bits as an unsigned number that is ordered as elements are. Exclusive scans
// begin with 0, whatever the elements. `product` is there because the kernels name it.

#import "lib/arithmetic/no_exceptions.wgsl"

override product: bool = false;
// The sign of signed integers and floats; 0 for unsigned integers.
override sign_bit: u32 = 0x80000000u;
// The infinity of floats; 0 for integers.
override infinity: u32 = 0u;

alias Accumulator = u32;

const WORDS = 1u;

fn identity() -> Accumulator {
    return decode(vec2<u32>(0u));
}

fn combine(a: Accumulator, b: Accumulator) -> Accumulator {
    return max(a, b);
}

fn to_words(a: Accumulator) -> vec2<u32> {
    return vec2<u32>(a, 0u);
}

fn of_words(words: vec2<u32>) -> Accumulator {
    return words.x;
}

fn decode(bits: vec2<u32>) -> Accumulator {
    if (infinity == 0u) {
        return bits.x ^ sign_bit;
    }
    let magnitude = bits.x & ~sign_bit;
    let below_zero = ((bits.x & sign_bit) != 0u) & (magnitude <= infinity);
    return select(sign_bit + magnitude, sign_bit - magnitude - 1u, below_zero);
}

fn encode(key: Accumulator) -> vec2<u32> {
    var bits = key ^ sign_bit;
    if (infinity != 0u && key < sign_bit) {
        bits = sign_bit | (sign_bit - key - 1u);
    }
    return vec2<u32>(bits, 0u);
}

#import "lib/arithmetic/no_sizes.wgsl"
