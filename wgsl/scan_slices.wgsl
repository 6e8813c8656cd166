// Scans whole slices, or windows of slices at any position, one invocation a slice.
//
// For short slices, for many slices side by side, and for windows that cannot hold whole tiles.
// Grid: workgroups of 64 invocations; an invocation a slice.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state: 20 values a slice, only used between windows.
// Constants: product, opaque, input_log2_bits, output_log2_bits.
// Bytes moved: one read and one write an element; 20 accumulators read and written a slice and window.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/load_bits.wgsl"
#import <element>
#import "lib/order.wgsl"

@group(0) @binding(3) var<storage, read_write> state: array<Accumulator>;

// Everything that continues a slice.
struct Progress {
    r: Accumulator,                   // fold of the current run
    q: Accumulator,                   // what the current run's results begin with
    p: Accumulator,                   // fold of the current tile's finished blocks
    c: Accumulator,                   // fold of the current span's finished tiles
    s: Accumulator,                   // fold of the finished spans
    levels: array<Accumulator, 15>,   // Hillis-Steele's last 1, 2, 4 and 8 values before each of its four steps
}

const PROGRESS = 20u;
const LEVELS = 5u;

fn resume(slice: u32) -> Progress {
    var progress: Progress;
    progress.r = state[slice];
    progress.q = state[params.count + slice];
    progress.p = state[2u * params.count + slice];
    progress.c = state[3u * params.count + slice];
    progress.s = state[4u * params.count + slice];
    for (var i = LEVELS; i < PROGRESS; i += 1u) {
        progress.levels[i - LEVELS] = state[i * params.count + slice];
    }
    return progress;
}

fn suspend(slice: u32, progress: ptr<function, Progress>) {
    state[slice] = (*progress).r;
    state[params.count + slice] = (*progress).q;
    state[2u * params.count + slice] = (*progress).p;
    state[3u * params.count + slice] = (*progress).c;
    state[4u * params.count + slice] = (*progress).s;
    for (var i = LEVELS; i < PROGRESS; i += 1u) {
        state[i * params.count + slice] = (*progress).levels[i - LEVELS];
    }
}

// Takes in the run that ends before element `next` (a multiple of 16) and works out q for the one that begins there.
fn close_run(next: u32, progress: ptr<function, Progress>) {
    let last = next - 1u;
    let run = (last >> RUN_SHIFT) % FANOUT;
    // Hillis-Steele, a run at a time: a step of stride 2^k needs what the runs 2^k back held before that step.
    var h = (*progress).r;
    for (var stride = 1u; stride < FANOUT; stride <<= 1u) {
        let slot = stride - 1u + run % stride;
        let before = (*progress).levels[slot];
        (*progress).levels[slot] = h;
        h = append(run >= stride, before, h);
    }
    if (run == FANOUT - 1u) {
        let block = (last >> BLOCK_SHIFT) % FANOUT;
        (*progress).p = append(block > 0u, (*progress).p, h);
        if (block == FANOUT - 1u) {
            let tile = (last >> TILE_SHIFT) % FANOUT;
            (*progress).c = append(tile > 0u, (*progress).c, (*progress).p);
            if (tile == FANOUT - 1u) {
                (*progress).s = append((last >> SPAN_SHIFT) > 0u, (*progress).s, (*progress).c);
            }
        }
    }
    var q: Accumulator;
    var present = (next >> SPAN_SHIFT) > 0u;
    if (present) {
        q = (*progress).s;
    }
    if ((next >> TILE_SHIFT) % FANOUT > 0u) {
        q = append(present, q, (*progress).c);
        present = true;
    }
    if ((next >> BLOCK_SHIFT) % FANOUT > 0u) {
        q = append(present, q, (*progress).p);
        present = true;
    }
    if ((next >> RUN_SHIFT) % FANOUT > 0u) {
        q = append(present, q, h);
    }
    (*progress).q = q;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let slice = workgroup_number(workgroup) * 64u + lane;
    if (slice >= params.count) {
        return;
    }
    var place = place_of(slice);
    var progress: Progress;
    var result = identity();
    if (params.resume == 1u) {
        progress = resume(slice);
        result = append(params.first > FANOUT, progress.q, progress.r);
    }
    for (var k = 0u; k < params.length; k += 1u) {
        let i = params.first + k;
        let item = load(place.input);
        if (params.exclusive == 1u) {
            store(place.output, result);
        }
        if (i % FANOUT == 0u) {
            if (i > 0u) {
                close_run(i, &progress);
            }
            progress.r = item;
        } else {
            progress.r = combine(progress.r, item);
        }
        result = append(i >= FANOUT, progress.q, progress.r);
        if (params.exclusive == 0u) {
            store(place.output, result);
        }
        place.input += params.input_axis_stride;
        place.output += params.output_axis_stride;
    }
    if (params.suspend == 1u) {
        suspend(slice, &progress);
    }
}
