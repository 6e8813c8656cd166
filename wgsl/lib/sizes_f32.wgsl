// Sizes: magnitudes that keep all bits, of float32. As integers, which NaN is larger than.

alias Size = u32;

fn size_of(a: Accumulator) -> Size {
    return bitcast<u32>(a) & 0x7fffffffu;
}

fn of_size(size: Size) -> Accumulator {
    return bitcast<f32>(size);
}

fn smaller(a: Size, b: Size) -> Size {
    return min(a, b);
}

fn larger(a: Size, b: Size) -> Size {
    return max(a, b);
}

// Whether a left fold has a zero instead.
fn is_tiny(size: Size) -> bool {
    return size <= NORMAL;
}

// A zero that compilers do not know; shifted, as `hidden` goes by params.zero itself.
fn times_zero(a: Accumulator) -> Accumulator {
    return combine(a, bitcast<f32>(params.zero << 1u));
}
