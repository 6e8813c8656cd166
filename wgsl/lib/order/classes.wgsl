// The class of a whole tile in a word, for tiles behind an absorbing result. Needs lib/order/exceptional.wgsl.

const HAS_INFINITY = 1u;     // a sum's: positive
const HAS_OTHER = 2u;        // a sum's negative infinity, a product's zero
const HAS_NAN = 4u;
const IS_NEGATIVE = 8u;      // a product's: an odd number of negative elements

// Extremes of the bits of some elements, which tell their class without a branch for each element.
struct Extremes {
    positive: i32,     // a sum's: the largest as signed numbers, which infinity and NaN are without a sign
    negative: u32,     // a sum's: the largest as unsigned numbers, which they are with one
    smallest: u32,     // a product's: magnitudes
    largest: u32,
    signs: u32,        // a product's: in the top bit, whether an odd number are negative
}

fn extend(before: Extremes, a: Accumulator) -> Extremes {
    let size = fine_magnitude(a); // orders NaN above infinity
    let bits = size | (to_words(a)[WORDS - 1u] & 0x80000000u);
    return Extremes(
        max(before.positive, bitcast<i32>(bits)),
        max(before.negative, bits),
        min(before.smallest, size),
        max(before.largest, size),
        before.signs ^ bits,
    );
}

fn class_of_extremes(found: Extremes) -> u32 {
    if (product) {
        let has_infinity = select(0u, HAS_INFINITY, found.largest == INFINITE);
        let has_zero = select(0u, HAS_OTHER, found.smallest <= NORMAL);
        let is_negative = select(0u, IS_NEGATIVE, (found.signs >> 31u) == 1u);
        return select(0u, HAS_NAN, found.largest > INFINITE) | has_infinity | has_zero | is_negative;
    }
    let has_positive = select(0u, HAS_INFINITY, found.positive == i32(INFINITE));
    let has_negative = select(0u, HAS_OTHER, found.negative == (INFINITE | 0x80000000u));
    return select(0u, HAS_NAN, found.largest > INFINITE) | has_positive | has_negative;
}

// Returns the class of a run's elements, whatever comes before them.
fn class_bits_of_run(run: Run) -> u32 {
    var found = Extremes(0, 0u, INFINITE, 0u, 0u);
    found = extend(found, run[0]);
    found = extend(found, run[1]);
    found = extend(found, run[2]);
    found = extend(found, run[3]);
    found = extend(found, run[4]);
    found = extend(found, run[5]);
    found = extend(found, run[6]);
    found = extend(found, run[7]);
    found = extend(found, run[8]);
    found = extend(found, run[9]);
    found = extend(found, run[10]);
    found = extend(found, run[11]);
    found = extend(found, run[12]);
    found = extend(found, run[13]);
    found = extend(found, run[14]);
    found = extend(found, run[15]);
    return class_of_extremes(found);
}

fn join_classes(a: u32, b: u32) -> u32 {
    return ((a | b) & ~IS_NEGATIVE) | ((a ^ b) & IS_NEGATIVE);
}

// Returns the value that stands for a tile of this class in further folds.
fn of_class(bits: u32) -> Accumulator {
    var top = select(0u, ONE, product);
    if ((bits & HAS_NAN) != 0u || (bits & 3u) == 3u) {
        top = INFINITE | (1u << (EXPONENT_SHIFT - min(EXPONENT_SHIFT, 1u)));
    } else if ((bits & HAS_INFINITY) != 0u) {
        top = INFINITE;
    } else if ((bits & HAS_OTHER) != 0u) {
        top = select(INFINITE | 0x80000000u, 0u, product);
    }
    if ((bits & IS_NEGATIVE) != 0u) {
        top |= 0x80000000u;
    }
    var words = vec2<u32>(0u);
    words[WORDS - 1u] = top ^ params.zero; // hidden, as not_a_number is
    return of_words(words);
}
