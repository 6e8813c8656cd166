// Sizes: magnitudes that keep all bits, of float32. As integers, which NaN is larger than.

alias Size = u32;

fn size_of(a: Accumulator) -> Size {
    return a & 0x7fffffffu;
}

fn of_size(size: Size) -> Accumulator {
    return size;
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

// A zero that compilers do not know.
fn times_zero(a: Accumulator) -> Accumulator {
    return combine(a, params.zero);
}
