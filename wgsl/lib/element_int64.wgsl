// Slot <element>: integers of 64 bits as pairs of u32. Signed and unsigned agree.

#import "lib/int64.wgsl"

override product: bool = false;

alias Accumulator = vec2<u32>;

fn identity() -> Accumulator {
    return vec2<u32>(select(0u, 1u, product), 0u);
}

fn combine(a: Accumulator, b: Accumulator) -> Accumulator {
    if (product) {
        return multiply64(a, b);
    }
    return add64(a, b);
}

fn load(element: u32) -> Accumulator {
    return load_bits(element);
}

fn store(element: u32, value: Accumulator) {
    store_bits(element, value);
}
