// The part of the canonical order inside a tile, by a workgroup of 256 invocations with one run each.

const LANES = 256u;

var<workgroup> shelves: array<array<Accumulator, 256>, 2>;

struct Run {
    items: array<Accumulator, 16>,
    length: u32,               // elements present, 0 to 16
    total: Accumulator,
}

// Reads the invocation's run and folds it: items become r(i). `start` is the run's first element in the window.
fn fold_run(start: u32, input_base: u32) -> Run {
    var run: Run;
    run.length = min(params.length - min(start, params.length), FANOUT);
    var place = input_base + start * params.input_axis_stride;
    for (var i = 0u; i < run.length; i += 1u) {
        let item = load(place);
        run.total = append(i > 0u, run.total, item);
        run.items[i] = run.total;
        place += params.input_axis_stride;
    }
    return run;
}

// Hillis-Steele over the run totals of each block: returns h(run) and leaves every h on shelf 0.
fn scan_runs(lane: u32, total: Accumulator) -> Accumulator {
    var h = total;
    var shelf = 0u;
    shelves[0][lane] = h;
    workgroupBarrier();
    for (var stride = 1u; stride < FANOUT; stride <<= 1u) {
        if ((lane % FANOUT) >= stride) {
            h = combine(shelves[shelf][lane - stride], h);
        }
        shelf = 1u - shelf;
        shelves[shelf][lane] = h;
        workgroupBarrier();
    }
    return h;
}

// The left fold of the totals of the first `blocks` blocks (at least one), after scan_runs.
fn fold_blocks(blocks: u32) -> Accumulator {
    var p = shelves[0][FANOUT - 1u];
    for (var block = 1u; block < blocks; block += 1u) {
        p = combine(p, shelves[0][block * FANOUT + FANOUT - 1u]);
    }
    return p;
}
