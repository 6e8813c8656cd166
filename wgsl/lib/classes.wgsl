// The class of a whole tile in a word, for tiles behind an absorbing result. Needs lib/exceptional.wgsl.

const HAS_INFINITY = 1u;     // a sum's: positive
const HAS_OTHER = 2u;        // a sum's negative infinity, a product's zero
const HAS_NAN = 4u;
const IS_NEGATIVE = 8u;      // a product's: an odd number of negative elements

fn top_word(a: Accumulator) -> u32 {
    return to_words(a)[WORDS - 1u];
}

fn is_nan(a: Accumulator) -> bool {
    return (magnitude(a) > INFINITE) | (is_exceptional(a) & (WORDS == 2u) & (to_words(a).x != 0u));
}

// The class of an element but for a product's sign: to be joined with `|`.
fn class_bits(a: Accumulator) -> u32 {
    if (is_nan(a)) {
        return HAS_NAN;
    }
    if (product) {
        return select(0u, HAS_INFINITY, is_exceptional(a)) | select(0u, HAS_OTHER, is_zero(a));
    }
    return select(0u, select(HAS_INFINITY, HAS_OTHER, (top_word(a) >> 31u) == 1u), is_exceptional(a));
}

// The class of a run's elements, whatever comes first.
fn class_bits_of_run(run: Run) -> u32 {
    let any = class_bits(run[0]) | class_bits(run[1]) | class_bits(run[2]) | class_bits(run[3])
        | class_bits(run[4]) | class_bits(run[5]) | class_bits(run[6]) | class_bits(run[7])
        | class_bits(run[8]) | class_bits(run[9]) | class_bits(run[10]) | class_bits(run[11])
        | class_bits(run[12]) | class_bits(run[13]) | class_bits(run[14]) | class_bits(run[15]);
    let signs = top_word(run[0]) ^ top_word(run[1]) ^ top_word(run[2]) ^ top_word(run[3])
        ^ top_word(run[4]) ^ top_word(run[5]) ^ top_word(run[6]) ^ top_word(run[7])
        ^ top_word(run[8]) ^ top_word(run[9]) ^ top_word(run[10]) ^ top_word(run[11])
        ^ top_word(run[12]) ^ top_word(run[13]) ^ top_word(run[14]) ^ top_word(run[15]);
    return any | select(0u, IS_NEGATIVE, product && (signs >> 31u) == 1u);
}

fn join_classes(a: u32, b: u32) -> u32 {
    return ((a | b) & ~IS_NEGATIVE) | ((a ^ b) & IS_NEGATIVE);
}

// What stands for a tile of this class in further folds.
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
    words[WORDS - 1u] = top;
    return of_words(words);
}
