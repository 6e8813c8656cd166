// Values behind which only the classes of elements count, and what stands for an element there.
// Needs lib/order/exceptional.wgsl.

fn is_exceptional(a: Accumulator) -> bool {
    return EXCEPTIONS & (magnitude(a) >= INFINITE);
}

fn is_zero(a: Accumulator) -> bool {
    let words = to_words(a);
    return ((words[WORDS - 1u] << 1u) | (words[0] << (2u - WORDS))) == 0u;
}

// Whether every left fold from `a` on has only NaN, infinities and a product's zeros. Without branches (`||`): with
// them SwiftShader never finishes compiling a product's scan_rows.
fn is_absorbing(a: Accumulator) -> bool {
    return EXCEPTIONS & (is_exceptional(a) | (product & is_zero(a)));
}

// What stands for an element where the fold before it is absorbing: NaN, infinity and a product's zero for themselves,
// any other for the identity with its sign. Folds of these neither overflow nor underflow, so their order is free.
fn class_of(element: Accumulator) -> Accumulator {
    let a = normal(element);
    if (is_absorbing(a)) {
        return a;
    }
    var words = vec2<u32>(0u);
    words[WORDS - 1u] = select(0u, (to_words(a)[WORDS - 1u] & 0x80000000u) | ONE, product);
    return of_words(words);
}
