// Which values make a tile exceptional: NaN, infinity, and of products of floats what is near underflow; and what
// stands for a value where only its class counts.
//
// The element's file (slots/element/f32.wgsl and others) says what a value looks like: EXCEPTIONS, whether it has NaN
// and infinity; WORDS, the 32-bit words it is made of, the upper one last; INFINITE, NORMAL and ONE, the upper words of
// infinity, of the smallest normal number and of 1; EXPONENT_SHIFT, where the exponent begins in that word. Without
// their signs, upper words are ordered as the numbers are, so that all comparisons here are of integers: devices that
// flush subnormal numbers, or whose compilers assume that there is no NaN, decide alike.
//
// Used in this order: `checked` and `link` are steps of the canonical order, which mark what is out of range;
// `excess` and `is_excessive` tell whether a tile has such a value; `fold`, or its halves `operand` and `settled`, are
// the steps of the left fold by which an exceptional tile is done again; `class_of` (lib/order/absorbing.wgsl) is for
// tiles behind a NaN, an infinity or a product's zero.

// Whether sums and products have the same bits in any order: those of integers do.
const EXACT = !EXCEPTIONS;

// The top word of twice the smallest normal number. Products below it are out of range: so far from underflow, devices
// that flush subnormals and devices that keep them agree.
const SMALL = 2u * NORMAL;

// Of a product, the least magnitude that is in range here. Passes that look for exceptional tiles set it to SMALL.
// Passes that only write leave it 0, as do folds of classes: nothing is then out of range.
var<private> least: u32 = 0u;

// The upper word without its sign: the larger the value, the larger the word; NaN is above infinity. 0 for integers.
fn magnitude(a: Accumulator) -> u32 {
    if (!EXCEPTIONS) {
        return 0u;
    }
    return to_words(a)[WORDS - 1u] & 0x7fffffffu;
}

// The same, with the last bit set if the lower word is not 0. Only so can a float64 just above the smallest normal
// number, whose upper word is the same, be told from it.
fn fine_magnitude(a: Accumulator) -> u32 {
    return magnitude(a) | select(0u, 1u, (WORDS == 2u) & (to_words(a).x != 0u));
}

// One number that is large for what is too large and for what is too small, so that the maximum of a tile's tells
// whether any is out of range. Of products SMALL is subtracted: what is below SMALL wraps around to a huge number.
fn excess(a: Accumulator) -> u32 {
    return magnitude(a) - select(0u, SMALL, product);
}

// The same of an element of a product and of the value that it made, where neither was checked. 0 of a sum.
fn excess_of_made(element: Accumulator, value: Accumulator) -> u32 {
    if (!product) {
        return 0u;
    }
    var smallest = magnitude(value);
    if (SMALL_ELEMENTS) {
        smallest = min(smallest, magnitude(element));
    }
    return smallest - SMALL;
}

// Whether the largest excess of a tile is that of NaN, infinity or, of a product, of a value below SMALL.
fn is_excessive(largest: u32) -> bool {
    return EXCEPTIONS & (largest >= select(INFINITE, INFINITE - SMALL, product));
}

// A quiet NaN: infinity's exponent, and the highest bit of the fraction (of integers some value that compiles). Hidden:
// compilers with fast math would drop a choice of NaN.
fn not_a_number() -> Accumulator {
    var words = vec2<u32>(0u);
    words[WORDS - 1u] = (INFINITE | (1u << (EXPONENT_SHIFT - min(EXPONENT_SHIFT, 1u)))) ^ params.zero;
    return of_words(words);
}

// A value that results depend on. Of a product, NaN takes the place of what is below the range. A NaN stays NaN in all
// that is computed from it, so the results that depend on the value, and no others, show that it was there.
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

// A value as left folds have it: of a product, all up to the smallest normal number is a zero of the value's sign.
fn normal(a: Accumulator) -> Accumulator {
    if (EXCEPTIONS && product) {
        var words = vec2<u32>(0u);
        words[WORDS - 1u] = to_words(a)[WORDS - 1u] & 0x80000000u;
        return select(a, of_words(words), fine_magnitude(a) <= NORMAL);
    }
    return a;
}

// A step of a left fold: `a` is the last result, `b` the next element. In a product a tiny number counts as zero, be it
// an operand or the result; a first element is only an operand then, and stays as it is where it is the result. One
// choice does for all three: if the smallest of them is tiny, the product is zero, or NaN where the other is infinite,
// which is what the product times zero gives.
fn fold(a: Accumulator, b: Accumulator) -> Accumulator {
    let next = combine(a, b);
    if (EXCEPTIONS && product) {
        return zero_if_tiny(next, smaller(smaller(size_of(a), size_of(b)), size_of(next)));
    }
    return next;
}

// The two halves of `fold`, for loops in which each product waits for the one before it: the tests then run beside the
// products, one step behind. First the operand: the element, or a zero if it or `before`, the last result but one, is
// tiny.
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

// Then the result, which is a zero if it or `before`, the last one, is tiny.
fn settled(before: Accumulator, result: Accumulator) -> Accumulator {
    if (EXCEPTIONS && product) {
        return zero_if_tiny(result, smaller(size_of(before), size_of(result)));
    }
    return result;
}

fn zero_if_tiny(a: Accumulator, size: Size) -> Accumulator {
    return select(a, times_zero(a), is_tiny(size));
}

#import "lib/order/absorbing.wgsl"
