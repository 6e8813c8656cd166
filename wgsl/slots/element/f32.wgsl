// Slot <element>: float32.

#import "lib/arithmetic/accumulate_f32.wgsl"

fn decode(bits: vec2<u32>) -> Accumulator {
    return bits.x;
}

fn encode(value: Accumulator) -> vec2<u32> {
    return vec2<u32>(value, 0u);
}

// Whether elements but 0 can be too small for the range.
const SMALL_ELEMENTS = true;
