// Slot <element>: integers of 8, 16 and 32 bits. Sums and products wrap, so they are exact modulo 2^32 and cut to the
// element's width on store; signed and unsigned agree.

#import "lib/arithmetic/no_exceptions.wgsl"

override product: bool = false;

alias Accumulator = u32;

const WORDS = 1u;

fn identity() -> Accumulator {
    return select(0u, 1u, product);
}

fn combine(a: Accumulator, b: Accumulator) -> Accumulator {
    if (product) {
        return a * b;
    }
    return a + b;
}

fn to_words(a: Accumulator) -> vec2<u32> {
    return vec2<u32>(a, 0u);
}

fn of_words(words: vec2<u32>) -> Accumulator {
    return words.x;
}

fn decode(bits: vec2<u32>) -> Accumulator {
    return bits.x;
}

fn encode(value: Accumulator) -> vec2<u32> {
    return vec2<u32>(value, 0u);
}

#import "lib/arithmetic/no_sizes.wgsl"
