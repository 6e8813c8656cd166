// A block of 256 elements in the registers of an invocation. Needs <reads> and <writes>.

#import "lib/run.wgsl"

// r(i) of the invocation's 16 runs; later their results.
var<private> runs: array<Run, 16>;
// h(j) of its block.
var<private> heads: Run;

fn take_run(first: u32, input: u32, count: u32, classes: bool) -> Run {
    // Beyond the end of the slice some element is read again, and its results are without meaning.
    let begin = min(first, count - 1u);
    var items = load_run(input + begin * params.input_axis_stride, params.input_axis_stride, min(count - begin, 16u));
    if (EXCEPTIONS && classes) {
        items = classes_of_run(items);
    }
    return fold_run(items);
}

fn put_run(first: u32, output: u32, count: u32, before: Accumulator, results: Run) {
    var run = results;
    if (params.exclusive == 1u) {
        run = shifted_run(before, results);
    }
    let stride = params.output_axis_stride;
    store_run(output + first * stride, stride, count - min(first, count), run);
}

// The largest magnitude of the first `members` results.
fn largest_of_block(members: u32) -> u32 {
    var largest = largest_of_run(runs[0], members);
    largest = max(largest, largest_of_run(runs[1], members - min(16u, members)));
    largest = max(largest, largest_of_run(runs[2], members - min(32u, members)));
    largest = max(largest, largest_of_run(runs[3], members - min(48u, members)));
    largest = max(largest, largest_of_run(runs[4], members - min(64u, members)));
    largest = max(largest, largest_of_run(runs[5], members - min(80u, members)));
    largest = max(largest, largest_of_run(runs[6], members - min(96u, members)));
    largest = max(largest, largest_of_run(runs[7], members - min(112u, members)));
    largest = max(largest, largest_of_run(runs[8], members - min(128u, members)));
    largest = max(largest, largest_of_run(runs[9], members - min(144u, members)));
    largest = max(largest, largest_of_run(runs[10], members - min(160u, members)));
    largest = max(largest, largest_of_run(runs[11], members - min(176u, members)));
    largest = max(largest, largest_of_run(runs[12], members - min(192u, members)));
    largest = max(largest, largest_of_run(runs[13], members - min(208u, members)));
    largest = max(largest, largest_of_run(runs[14], members - min(224u, members)));
    largest = max(largest, largest_of_run(runs[15], members - min(240u, members)));
    return largest;
}
