// A block of 256 elements by one invocation, in loops, with its runs in memory. Needs <reads> and <writes>.

#import "lib/run.wgsl"
#import "lib/run_reach.wgsl"

// r(i) of the invocation's 16 runs; later their results.
var<private> runs: array<Run, 16>;
// h(j) of its block.
var<private> heads: Run;
// Of a product: how far its runs reach.
var<private> reaches: array<Reach, 16>;

fn take_run(j: u32, first: u32, input: u32, count: u32, classes: bool) -> Run {
    // Beyond the end of the slice some element is read again, and its results are without meaning.
    let begin = min(first, count - 1u);
    var items = load_run(input + begin * params.input_axis_stride, params.input_axis_stride, min(count - begin, 16u));
    if (EXCEPTIONS && classes) {
        items = classes_of_run(items);
    }
    if (product && EXCEPTIONS) {
        items = padded_run(items, count - begin);
        let r = fold_run(items);
        reaches[j] = reach_of_run(items, r);
        return r;
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

// Takes in the block of this invocation, `first` elements into the tile.
fn fold_block(first: u32, input: u32, count: u32, classes: bool) {
    for (var j = 0u; j < 16u; j += 1u) {
        let run = take_run(j, first + j * 16u, input, count, classes);
        runs[j] = run;
        heads[j] = run[15];
    }
    heads = scan_totals(heads);
}

// Turns runs into results that go on from q, where `present`. Returns the largest excess of the first `members`.
fn results_of_block(present: bool, q: Accumulator, members: u32) -> u32 {
    var largest = 0u;
    var start = q;
    var goes_on = present;
    for (var j = 0u; j < 16u; j += 1u) {
        let r = runs[j];
        let results = results_of_run(goes_on, start, r);
        runs[j] = results;
        if (product && EXCEPTIONS) {
            let of_run = excess_of_reach(reaches[j], r[15], goes_on, start);
            largest = max(largest, select(0u, of_run, j * 16u < members));
        } else if (EXCEPTIONS) {
            largest = max(largest, excess_of_run(results, members - min(j * 16u, members)));
        }
        start = append(present, q, heads[j]);
        goes_on = true;
    }
    return largest;
}

fn store_block(first: u32, output: u32, count: u32, before: Accumulator) {
    var last = before;
    for (var j = 0u; j < 16u; j += 1u) {
        let run = runs[j];
        put_run(first + j * 16u, output, count, last, run);
        last = run[15];
    }
}
