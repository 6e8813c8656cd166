// Slot <element>: the same as slots/element/max.wgsl for elements of 64 bits, whose keys are pairs of u32.

#import "lib/arithmetic/int64.wgsl"
#import "lib/arithmetic/no_exceptions.wgsl"

override product: bool = false;
// In the top word, as there.
override sign_bit: u32 = 0x80000000u;
override infinity: u32 = 0u;

alias Accumulator = vec2<u32>;

const WORDS = 2u;

fn identity() -> Accumulator {
    return decode(vec2<u32>(0u));
}

fn combine(a: Accumulator, b: Accumulator) -> Accumulator {
    return select(a, b, less64(a, b));
}

fn to_words(a: Accumulator) -> vec2<u32> {
    return a;
}

fn of_words(words: vec2<u32>) -> Accumulator {
    return words;
}

fn decode(bits: vec2<u32>) -> Accumulator {
    if (infinity == 0u) {
        return vec2<u32>(bits.x, bits.y ^ sign_bit);
    }
    let is_nan = less64(vec2<u32>(0u, infinity), vec2<u32>(bits.x, bits.y & ~sign_bit));
    let below_zero = ((bits.y & sign_bit) != 0u) & !is_nan;
    return select(vec2<u32>(bits.x, bits.y | sign_bit), ~bits, below_zero);
}

fn encode(key: Accumulator) -> vec2<u32> {
    let below_zero = (infinity != 0u) & (key.y < sign_bit);
    return select(vec2<u32>(key.x, key.y ^ sign_bit), ~key, below_zero);
}

#import "lib/arithmetic/no_sizes.wgsl"
