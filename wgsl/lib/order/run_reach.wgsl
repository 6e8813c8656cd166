// How far values of a product of floats reach, in a run, and whether one is out of range. Beside the chain of
// multiplications, which a check of each would make twice as long. Needs lib/order/exceptional.wgsl and
// lib/order/run.wgsl.

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

// What no result of a sum's tile is larger than, by the largest r in magnitude: h and p are sums of up to 16 and 256
// runs' totals, and results are of three such values.
fn largest_of_sum(largest_r: u32) -> u32 {
    return min(((largest_r >> EXPONENT_SHIFT) + 10u) << EXPONENT_SHIFT, INFINITE);
}

fn reach_of_run(items: Run, r: Run) -> Reach {
    var found = unreached();
    found = reach(found, items[0], r[0]);
    found = reach(found, items[1], r[1]);
    found = reach(found, items[2], r[2]);
    found = reach(found, items[3], r[3]);
    found = reach(found, items[4], r[4]);
    found = reach(found, items[5], r[5]);
    found = reach(found, items[6], r[6]);
    found = reach(found, items[7], r[7]);
    found = reach(found, items[8], r[8]);
    found = reach(found, items[9], r[9]);
    found = reach(found, items[10], r[10]);
    found = reach(found, items[11], r[11]);
    found = reach(found, items[12], r[12]);
    found = reach(found, items[13], r[13]);
    found = reach(found, items[14], r[14]);
    found = reach(found, items[15], r[15]);
    return found;
}

// The largest excess of `count` results of a run, and of a product's values besides, whose elements are padded.
fn excess_of_step(items: Run, r: Run, results: Run, count: u32, has_q: bool, q: Accumulator) -> u32 {
    if (product) {
        return excess_of_reach(reach_of_run(items, r), r[15], has_q, q);
    }
    return excess_of_run(results, count);
}

// A run with the identity behind its `count` elements, which changes no r and no result of a product.
fn padded_run(items: Run, count: u32) -> Run {
    return Run(
        select(identity(), items[0], 0u < count), select(identity(), items[1], 1u < count),
        select(identity(), items[2], 2u < count), select(identity(), items[3], 3u < count),
        select(identity(), items[4], 4u < count), select(identity(), items[5], 5u < count),
        select(identity(), items[6], 6u < count), select(identity(), items[7], 7u < count),
        select(identity(), items[8], 8u < count), select(identity(), items[9], 9u < count),
        select(identity(), items[10], 10u < count), select(identity(), items[11], 11u < count),
        select(identity(), items[12], 12u < count), select(identity(), items[13], 13u < count),
        select(identity(), items[14], 14u < count), select(identity(), items[15], 15u < count),
    );
}
