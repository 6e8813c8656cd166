// The accumulator of float16 and float32. Every float operation of the canonical order is `combine`.

override product: bool = false;
// Hide the operands from compilers that would regroup or simplify a chain of float operations.
override opaque: bool = false;

alias Accumulator = f32;

fn identity() -> Accumulator {
    return select(0.0, 1.0, product);
}

fn combine(a: Accumulator, b: Accumulator) -> Accumulator {
    var left = a;
    var right = b;
    if (opaque) {
        left = bitcast<f32>(bitcast<u32>(a) ^ params.zero);
        right = bitcast<f32>(bitcast<u32>(b) ^ params.zero);
    }
    if (product) {
        return left * right;
    }
    return left + right;
}
