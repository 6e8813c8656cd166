// How large members of a run are: for passes that learn later what the run goes on from.

// The largest magnitude of the first `count` members.
fn largest_of_run(run: Run, count: u32) -> u32 {
    var result = 0u;
    result = max(result, select(0u, magnitude(run[0]), 0u < count));
    result = max(result, select(0u, magnitude(run[1]), 1u < count));
    result = max(result, select(0u, magnitude(run[2]), 2u < count));
    result = max(result, select(0u, magnitude(run[3]), 3u < count));
    result = max(result, select(0u, magnitude(run[4]), 4u < count));
    result = max(result, select(0u, magnitude(run[5]), 5u < count));
    result = max(result, select(0u, magnitude(run[6]), 6u < count));
    result = max(result, select(0u, magnitude(run[7]), 7u < count));
    result = max(result, select(0u, magnitude(run[8]), 8u < count));
    result = max(result, select(0u, magnitude(run[9]), 9u < count));
    result = max(result, select(0u, magnitude(run[10]), 10u < count));
    result = max(result, select(0u, magnitude(run[11]), 11u < count));
    result = max(result, select(0u, magnitude(run[12]), 12u < count));
    result = max(result, select(0u, magnitude(run[13]), 13u < count));
    result = max(result, select(0u, magnitude(run[14]), 14u < count));
    result = max(result, select(0u, magnitude(run[15]), 15u < count));
    return result;
}
