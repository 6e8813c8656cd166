// Slot <element>: integers of 8, 16 and 32 bits. Sums and products wrap, so they are exact modulo 2^32 and cut to the
// element's width on store; signed and unsigned agree.

override product: bool = false;

alias Accumulator = u32;

fn identity() -> Accumulator {
    return select(0u, 1u, product);
}

fn combine(a: Accumulator, b: Accumulator) -> Accumulator {
    if (product) {
        return a * b;
    }
    return a + b;
}

fn load(element: u32) -> Accumulator {
    return load_bits(element).x;
}

fn store(element: u32, value: Accumulator) {
    store_bits(element, vec2<u32>(value, 0u));
}
