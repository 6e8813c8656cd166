// Whether a tile may be exceptional, told from how large its values are before it is known what they go on from. The
// answer is cautious: a tile that is not suspect is not exceptional. Needs lib/order/exceptional.wgsl.

// So many powers of two below overflow, or above underflow, are safe, whatever the rounding.
const MARGIN = 6;
const HIGHEST = EXPONENT_BIAS - MARGIN;
// Twice the smallest normal number is 2^SMALL_EXPONENT.
const SMALL_EXPONENT = 2 - EXPONENT_BIAS;
// The power of two of a value that is out of range.
const BEYOND = 8192;

// All values are below 2^high in magnitude, and at least half of 2^low, which matters of products.
struct Bounds {
    high: i32,
    low: i32,
}

fn exponent(magnitude: u32) -> i32 {
    return i32(magnitude >> EXPONENT_SHIFT) - EXPONENT_BIAS + 1;
}

// Of a tile without what comes before it: the largest magnitudes of its results and of r, and the smallest of results.
fn bounds_of_tile(largest: u32, largest_r: u32, smallest: u32) -> Bounds {
    let in_tile = max(exponent(largest), exponent(largest_r));
    let is_beyond = largest >= INFINITE || (product && in_tile > HIGHEST);
    return Bounds(select(select(in_tile, exponent(largest), product), BEYOND, is_beyond), exponent(smallest));
}

// Whether a tile with these bounds may be exceptional where its results go on from `base`.
fn is_suspect(present: bool, base: Accumulator, bounds: Bounds) -> bool {
    if (bounds.high == BEYOND || (present && magnitude(base) >= INFINITE)) {
        return true;
    }
    if (!present) {
        return product && bounds.low <= SMALL_EXPONENT;
    }
    let of_base = exponent(magnitude(base));
    if (product) {
        return of_base + bounds.high > HIGHEST || of_base + bounds.low - 2 < SMALL_EXPONENT + MARGIN;
    }
    // A base is far enough from infinity if 8 * 2^HIGHEST are in between: p, p + h and a result without it are less
    // than half of that.
    let far = INFINITE - min(INFINITE, 1u << (EXPONENT_SHIFT - min(EXPONENT_SHIFT, 3u)));
    return bounds.high > HIGHEST || magnitude(base) >= far;
}

// The bounds of a tile's values, and of c, where it goes on from c inside its span.
fn bounds_in_span(present: bool, c: Accumulator, bounds: Bounds) -> Bounds {
    if (!present || bounds.high == BEYOND) {
        return bounds;
    }
    let of_c = exponent(magnitude(c));
    if (magnitude(c) >= INFINITE) {
        return Bounds(BEYOND, of_c);
    }
    if (product) {
        return Bounds(max(of_c + bounds.high, of_c) + 1, min(of_c + bounds.low, of_c) - 1);
    }
    return Bounds(max(of_c, bounds.high) + 1, bounds.low);
}

fn both_bounds(a: Bounds, b: Bounds) -> Bounds {
    return Bounds(max(a.high, b.high), min(a.low, b.low));
}

// Whether any tile of a span with these bounds may be exceptional where the span goes on from s. At least as cautious
// as is_suspect of each tile with s `combine` c.
fn is_span_suspect(present: bool, s: Accumulator, bounds: Bounds) -> bool {
    if (bounds.high >= BEYOND || (present && magnitude(s) >= INFINITE)) {
        return true;
    }
    let of_s = select(1, exponent(magnitude(s)), present);
    if (product) {
        return of_s + bounds.high > HIGHEST || of_s + bounds.low - 3 < SMALL_EXPONENT + MARGIN;
    }
    return max(of_s, bounds.high) >= HIGHEST;
}
