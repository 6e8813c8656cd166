// Slot <element>: integers of 8 or 16 bits, those of a word at once. Signed and unsigned agree.

#import "lib/arithmetic/integer_words.wgsl"
#import "lib/arithmetic/no_exceptions.wgsl"

alias Accumulator = u32;

const WORDS = 1u;

fn identity() -> Accumulator {
    return identity_words().x;
}

fn combine(a: Accumulator, b: Accumulator) -> Accumulator {
    return combine_words(vec4<u32>(a), vec4<u32>(b)).x;
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
