// Slot <element>: float16, accumulated in float32 and rounded once, on store.

#import "lib/accumulate_f32.wgsl"
#import "lib/half.wgsl"

fn decode(bits: vec2<u32>) -> Accumulator {
    return half_to_float(bits.x);
}

fn encode(value: Accumulator) -> vec2<u32> {
    return vec2<u32>(float_to_half(value), 0u);
}

// No element but 0 is too small for the range, and r and results are zeros where 0 is.
const SMALL_ELEMENTS = false;
