// Slot <element>: float32.

#import "lib/accumulate_f32.wgsl"

fn load(element: u32) -> Accumulator {
    return bitcast<f32>(load_bits(element).x);
}

fn store(element: u32, value: Accumulator) {
    store_bits(element, vec2<u32>(bitcast<u32>(value), 0u));
}
