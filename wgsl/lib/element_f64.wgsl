// Slot <element>: float64, native. The one piece that needs features (shader-f64, and shader-int64 for the
// casts) and that naga alone compiles.

override product: bool = false;
// Hide the operands from compilers that would regroup or simplify a chain of float operations.
override opaque: bool = false;

alias Accumulator = f64;

fn identity() -> Accumulator {
    return select(0.0lf, 1.0lf, product);
}

fn hidden(value: f64) -> f64 {
    return bitcast<f64>(bitcast<u64>(value) ^ u64(params.zero));
}

fn combine(a: Accumulator, b: Accumulator) -> Accumulator {
    var left = a;
    var right = b;
    if (opaque) {
        left = hidden(a);
        right = hidden(b);
    }
    if (product) {
        return left * right;
    }
    return left + right;
}

fn load(element: u32) -> Accumulator {
    let bits = load_bits(element);
    return bitcast<f64>((u64(bits.y) << 32u) | u64(bits.x));
}

fn store(element: u32, value: Accumulator) {
    let bits = bitcast<u64>(value);
    store_bits(element, vec2<u32>(u32(bits), u32(bits >> 32u)));
}
