// Slot <element>: float16, accumulated in float32 and rounded once, on store.

#import "lib/arithmetic/accumulate_f32.wgsl"

// Conversions of bit patterns, because the built-ins leave subnormals, infinities and NaN to the implementation. There
// are no branches: software drivers go through both sides of each, and a GPU's invocations may take both. Float
// arithmetic makes the subnormals of binary16, without any subnormal of binary32.

// Exact.
fn half_to_float(half: u32) -> u32 {
    let sign = (half & 0x8000u) << 16u;
    let magnitude = half & 0x7fffu;
    let normal = (magnitude << 13u) + select(0x38000000u, 0x70000000u, magnitude >= 0x7c00u);
    let subnormal = bitcast<u32>(f32(i32(magnitude)) * 0x1p-24f);
    return sign | select(subnormal, normal, magnitude >= 0x400u);
}

// Rounds to nearest, ties to even; overflow gives infinity, and every NaN a quiet one. The result is in the low 16
// bits; stores drop the others.
fn float_to_half(bits: u32) -> u32 {
    let sign = (bits >> 16u) & 0x8000u;
    let magnitude = bits & 0x7fffffffu;
    let rounded = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u;
    let normal = min(rounded, 0x7c00u);
    // A unit in the last place of 0.5, 0x3f000000, is that of binary16's subnormals.
    let subnormal = bitcast<u32>(bitcast<f32>(magnitude) + 0.5);
    let finite = select(subnormal, normal, magnitude >= 0x38800000u);
    return sign | select(finite, 0x7e00u, magnitude > 0x7f800000u);
}

fn decode(bits: vec2<u32>) -> Accumulator {
    return half_to_float(bits.x);
}

fn encode(value: Accumulator) -> vec2<u32> {
    return vec2<u32>(float_to_half(value), 0u);
}

// No element but 0 is too small for the range, and r and results are zeros where 0 is.
const SMALL_ELEMENTS = false;
