// Accumulators of 64 bits that are pairs of u32 as they are.

alias Accumulator = vec2<u32>;

const WORDS = 2u;

fn to_words(a: Accumulator) -> vec2<u32> {
    return a;
}

fn of_words(words: vec2<u32>) -> Accumulator {
    return words;
}

fn decode(bits: vec2<u32>) -> Accumulator {
    return bits;
}

fn encode(value: Accumulator) -> vec2<u32> {
    return value;
}
