// Slot <element>: float16, accumulated in float32 and rounded once, on store.

#import "lib/accumulate_f32.wgsl"
#import "lib/half.wgsl"

fn load(element: u32) -> Accumulator {
    return bitcast<f32>(half_to_float(load_bits(element).x));
}

fn store(element: u32, value: Accumulator) {
    store_bits(element, vec2<u32>(float_to_half(bitcast<u32>(value)), 0u));
}
