// The reach of a run: see lib/reach.wgsl. Needs lib/run.wgsl.

#import "lib/reach.wgsl"

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
