// Which values make a tile exceptional: NaN, infinity, and of products of floats what is near underflow; and what
// stands for a value where only its class counts.

// Whether sums and products have the same bits in any order: those of integers do.
const EXACT = !EXCEPTIONS;

// The top word of twice the smallest normal number. Products below it are out of range: so far from underflow, devices
// that flush subnormals and devices that keep them agree.
const SMALL = 2u * NORMAL;

// Of a product, the least magnitude that is in range here. Kernels that check set it to SMALL, and to 0 where only
// classes count.
var<private> least: u32 = 0u;

// The bits that tell how large a value is, without its sign: ordered as magnitudes are. 0 for integers.
fn magnitude(a: Accumulator) -> u32 {
    if (!EXCEPTIONS) {
        return 0u;
    }
    return to_words(a)[WORDS - 1u] & 0x7fffffffu;
}

// The same, with a last bit that tells whether the lower word is not 0: exact at the smallest normal number.
fn fine_magnitude(a: Accumulator) -> u32 {
    return magnitude(a) | select(0u, 1u, (WORDS == 2u) & (to_words(a).x != 0u));
}

// How far a result is from the middle of the range: from LIMIT on it makes its tile exceptional.
fn excess(a: Accumulator) -> u32 {
    return magnitude(a) - select(0u, SMALL, product);
}

fn is_excessive(largest: u32) -> bool {
    return EXCEPTIONS & (largest >= select(INFINITE, INFINITE - SMALL, product));
}

fn not_a_number() -> Accumulator {
    var words = vec2<u32>(0u);
    words[WORDS - 1u] = INFINITE | (1u << (EXPONENT_SHIFT - min(EXPONENT_SHIFT, 1u)));
    return of_words(words);
}

// A value that results depend on. Of a product, NaN stands for what is below the range: it reaches these results, and
// no others.
fn checked(a: Accumulator) -> Accumulator {
    if (EXCEPTIONS && product) {
        return select(a, not_a_number(), magnitude(a) < least);
    }
    return a;
}

// Two checked values combined, and the result checked.
fn link(a: Accumulator, b: Accumulator) -> Accumulator {
    return checked(combine(a, b));
}

// The same where b is an element that was not checked.
fn take(a: Accumulator, b: Accumulator) -> Accumulator {
    return admitted(b, combine(a, b));
}

// What an element made, where neither was checked.
fn admitted(element: Accumulator, result: Accumulator) -> Accumulator {
    if (EXCEPTIONS && product) {
        var smallest = magnitude(result);
        if (SMALL_ELEMENTS) {
            smallest = min(smallest, magnitude(element));
        }
        return select(result, not_a_number(), smallest < least);
    }
    return result;
}

// What left folds have for a value: of a product, a zero of its sign up to the smallest normal number.
fn normal(a: Accumulator) -> Accumulator {
    if (EXCEPTIONS && product) {
        var words = vec2<u32>(0u);
        words[WORDS - 1u] = to_words(a)[WORDS - 1u] & 0x80000000u;
        return select(a, of_words(words), fine_magnitude(a) <= NORMAL);
    }
    return a;
}

// A step of a left fold, from any result: a first element is a result as it is, but as an operand a zero if it is tiny.
// One choice for both operands and the result; times zero, an infinity is NaN.
fn fold(a: Accumulator, b: Accumulator) -> Accumulator {
    let next = combine(a, b);
    if (EXCEPTIONS && product) {
        return zero_if_tiny(next, smaller(smaller(size_of(a), size_of(b)), size_of(next)));
    }
    return next;
}

// An element as an operand, where `before` is the last result but one.
fn operand(before: Accumulator, element: Accumulator) -> Accumulator {
    if (EXCEPTIONS && product) {
        var smallest = size_of(before);
        if (SMALL_ELEMENTS) {
            smallest = smaller(smallest, size_of(element));
        }
        return zero_if_tiny(element, smallest);
    }
    return element;
}

// A result, where `before` is the last one.
fn settled(before: Accumulator, result: Accumulator) -> Accumulator {
    if (EXCEPTIONS && product) {
        return zero_if_tiny(result, smaller(size_of(before), size_of(result)));
    }
    return result;
}

fn zero_if_tiny(a: Accumulator, size: Size) -> Accumulator {
    return select(a, times_zero(a), is_tiny(size));
}

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
