// How far values of a product of floats reach, and whether one is out of range. Beside the chain of multiplications,
// which a check of each would make twice as long. Needs lib/exceptional.wgsl.

struct Reach {
    element: u32,      // the smallest magnitude of an element
    smallest: Size,    // of an r
    largest: Size,
}

fn unreached() -> Reach {
    var infinity = vec2<u32>(0u);
    infinity[WORDS - 1u] = INFINITE;
    return Reach(INFINITE, size_of(of_words(infinity)), size_of(of_words(vec2<u32>(0u))));
}

// Takes in an element and the r that it made.
fn reach(before: Reach, item: Accumulator, r: Accumulator) -> Reach {
    let size = size_of(r);
    var element = before.element;
    if (SMALL_ELEMENTS) {
        element = min(element, magnitude(item));
    }
    return Reach(element, smaller(before.smallest, size), larger(before.largest, size));
}

// Whether an element or an r may be one that left folds have a zero for.
fn has_tiny(found: Reach) -> bool {
    return (found.element <= NORMAL) | is_tiny(found.smallest);
}

// A run's extremes in magnitude.
struct Extent {
    value: u32,       // the smallest of elements and r
    smallest: u32,    // of results
    largest: u32,
}

// Of a run with this last r, whose results are q `combine` r where there is a q.
fn extent(found: Reach, r: Accumulator, has_q: bool, q: Accumulator) -> Extent {
    // Rounding keeps the order: where |r| is smallest and largest, so are the results.
    let low = of_size(found.smallest);
    let high = of_size(found.largest);
    return Extent(
        min(found.element, magnitude(low)),
        magnitude(select(low, combine(q, low), has_q)),
        // NaN is in the last r if it is in any, but perhaps not in the largest.
        max(magnitude(select(high, combine(q, high), has_q)), select(0u, magnitude(r), is_exceptional(r))),
    );
}

// The largest excess of a run's values and results.
fn excess_of_extent(all: Extent) -> u32 {
    return max(min(all.value, all.smallest) - SMALL, all.largest - SMALL);
}

fn excess_of_reach(found: Reach, r: Accumulator, has_q: bool, q: Accumulator) -> u32 {
    return excess_of_extent(extent(found, r, has_q, q));
}

// The largest result's magnitude; infinity if a value is out of range.
fn largest_of_extent(all: Extent) -> u32 {
    return select(all.largest, max(all.largest, INFINITE), all.value < SMALL);
}
