// Slot <element>: float64 where the device has no 64-bit floats, as pairs of u32. The native path's bits.

#import "lib/float64.wgsl"

override product: bool = false;

alias Accumulator = vec2<u32>;

fn identity() -> Accumulator {
    return vec2<u32>(0u, select(0u, 0x3ff00000u, product));
}

fn combine(a: Accumulator, b: Accumulator) -> Accumulator {
    if (product) {
        return multiply_f64(a, b);
    }
    return add_f64(a, b);
}

fn load(element: u32) -> Accumulator {
    return load_bits(element);
}

fn store(element: u32, value: Accumulator) {
    store_bits(element, value);
}
