// A block of 256 elements by one invocation. Needs <reads>, <writes> and <block>.

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

#import <block>
