// A run of 16 elements in registers, written out as in slots/run/written.wgsl.

#import <run>

alias Run = array<Accumulator, 16>;

// The largest excess of the first `count` members: of a sum, the largest magnitude.
fn excess_of_run(run: Run, count: u32) -> u32 {
    var result = 0u;
    result = max(result, select(0u, excess(run[0]), 0u < count));
    result = max(result, select(0u, excess(run[1]), 1u < count));
    result = max(result, select(0u, excess(run[2]), 2u < count));
    result = max(result, select(0u, excess(run[3]), 3u < count));
    result = max(result, select(0u, excess(run[4]), 4u < count));
    result = max(result, select(0u, excess(run[5]), 5u < count));
    result = max(result, select(0u, excess(run[6]), 6u < count));
    result = max(result, select(0u, excess(run[7]), 7u < count));
    result = max(result, select(0u, excess(run[8]), 8u < count));
    result = max(result, select(0u, excess(run[9]), 9u < count));
    result = max(result, select(0u, excess(run[10]), 10u < count));
    result = max(result, select(0u, excess(run[11]), 11u < count));
    result = max(result, select(0u, excess(run[12]), 12u < count));
    result = max(result, select(0u, excess(run[13]), 13u < count));
    result = max(result, select(0u, excess(run[14]), 14u < count));
    result = max(result, select(0u, excess(run[15]), 15u < count));
    return result;
}

// The run one element later, `before` first.
fn shifted_run(before: Accumulator, run: Run) -> Run {
    return Run(
        before, run[0], run[1], run[2], run[3], run[4], run[5], run[6],
        run[7], run[8], run[9], run[10], run[11], run[12], run[13], run[14],
    );
}

// Classes instead of elements, where the fold before them is absorbing.
fn classes_of_run(run: Run) -> Run {
    return Run(
        class_of(run[0]), class_of(run[1]), class_of(run[2]), class_of(run[3]),
        class_of(run[4]), class_of(run[5]), class_of(run[6]), class_of(run[7]),
        class_of(run[8]), class_of(run[9]), class_of(run[10]), class_of(run[11]),
        class_of(run[12]), class_of(run[13]), class_of(run[14]), class_of(run[15]),
    );
}
