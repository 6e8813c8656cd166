// Sizes: magnitudes that keep all bits, of pairs of u32. As integers, which NaN is larger than. Needs
// lib/arithmetic/int64.wgsl.

alias Size = vec2<u32>;

fn size_of(a: Accumulator) -> Size {
    return vec2<u32>(a.x, a.y & 0x7fffffffu);
}

fn of_size(size: Size) -> Accumulator {
    return size;
}

fn smaller(a: Size, b: Size) -> Size {
    return select(b, a, less64(a, b));
}

fn larger(a: Size, b: Size) -> Size {
    return select(a, b, less64(a, b));
}

// Whether a left fold has a zero instead.
fn is_tiny(size: Size) -> bool {
    return !less64(vec2<u32>(0u, NORMAL), size);
}

fn times_zero(a: Accumulator) -> Accumulator {
    return vec2<u32>(0u, select(a.y & 0x80000000u, F64_NAN.y, size_of(a).y >= INFINITE));
}
