// Slot <tile>: a tile by 256 invocations for GPUs, where runs are quads: neighbours read and write neighbouring vectors
// of 16 bytes, which go through workgroup memory into runs of 16 elements and back.

#import "lib/tiles/fold.wgsl"
#import "lib/tiles/fold_blocks.wgsl"
#import "lib/memory/quads.wgsl"
#import "lib/memory/fetch_quads.wgsl"

// Vectors in the order of memory. 8 KiB, so that no kernel needs more than WebGPU's 16: a tile of 32-bit elements goes
// through it in two rounds, one of 64 bits in four.
var<workgroup> stage: array<vec4<u32>, 512>;
override STAGED_RUNS: u32 = 4096u >> input_log2_bits;
override RUN_QUADS: u32 = 1u << (input_log2_bits - 3u);

// Keeps neighbours out of each other's banks of memory, where they have neighbouring vectors and where they have
// neighbouring runs.
fn on_stage(vector: u32) -> u32 {
    return vector ^ ((vector >> 3u) & 7u);
}

// Round `round` on the way to runs: all leave two vectors (of bytes one), those whose turn it is take a run.
fn take_turn(lane: u32, round: u32, a: vec4<u32>, b: vec4<u32>, before: Quads) -> Quads {
    workgroupBarrier();
    stage[on_stage(lane)] = a;
    if (input_log2_bits > 3u) {
        stage[on_stage(LANES + lane)] = b;
    }
    workgroupBarrier();
    if (lane / STAGED_RUNS != round) {
        return before;
    }
    let place = lane % STAGED_RUNS * RUN_QUADS;
    var quads: Quads;
    quads[0] = stage[on_stage(place)];
    if (input_log2_bits > 3u) {
        quads[1] = stage[on_stage(place + 1u)];
    }
    if (input_log2_bits > 4u) {
        quads[2] = stage[on_stage(place + 2u)];
        quads[3] = stage[on_stage(place + 3u)];
    }
    if (input_log2_bits > 5u) {
        quads[4] = stage[on_stage(place + 4u)];
        quads[5] = stage[on_stage(place + 5u)];
        quads[6] = stage[on_stage(place + 6u)];
        quads[7] = stage[on_stage(place + 7u)];
    }
    return quads;
}

// The invocation's run of a tile of `count` elements; behind its end some element, without meaning.
fn load_lane(lane: u32, input: u32, count: u32) -> Run {
    let first = input >> (7u - input_log2_bits);
    let read = fetch_quads(lane, LANES, first, (count << input_log2_bits) >> 7u);
    var quads: Quads;
    quads = take_turn(lane, 0u, read[0], read[1], quads);
    if (input_log2_bits > 4u) {
        quads = take_turn(lane, 1u, read[2], read[3], quads);
    }
    if (input_log2_bits > 5u) {
        quads = take_turn(lane, 2u, read[4], read[5], quads);
        quads = take_turn(lane, 3u, read[6], read[7], quads);
    }
    return run_of_quads(quads);
}

// Round `round` on the way back: those whose turn it is leave a run, all write two vectors.
fn give_turn(lane: u32, round: u32, first: u32, vectors: u32, quads: Quads) {
    workgroupBarrier();
    if (lane / STAGED_RUNS == round) {
        let place = lane % STAGED_RUNS * RUN_QUADS;
        stage[on_stage(place)] = quads[0];
        if (output_log2_bits > 3u) {
            stage[on_stage(place + 1u)] = quads[1];
        }
        if (output_log2_bits > 4u) {
            stage[on_stage(place + 2u)] = quads[2];
            stage[on_stage(place + 3u)] = quads[3];
        }
        if (output_log2_bits > 5u) {
            stage[on_stage(place + 4u)] = quads[4];
            stage[on_stage(place + 5u)] = quads[5];
            stage[on_stage(place + 6u)] = quads[6];
            stage[on_stage(place + 7u)] = quads[7];
        }
    }
    workgroupBarrier();
    let number = 2u * LANES * round + lane;
    if (number < vectors) {
        set_output_unit(first + number, stage[on_stage(lane)]);
    }
    if (output_log2_bits > 3u && number + LANES < vectors) {
        set_output_unit(first + number + LANES, stage[on_stage(LANES + lane)]);
    }
}

// Whole vectors of the first `count` elements.
fn store_lane(lane: u32, output: u32, count: u32, run: Run) {
    let first = output >> (7u - output_log2_bits);
    let vectors = (count << output_log2_bits) >> 7u;
    let quads = quads_of_run(run);
    give_turn(lane, 0u, first, vectors, quads);
    if (output_log2_bits > 4u) {
        give_turn(lane, 1u, first, vectors, quads);
    }
    if (output_log2_bits > 5u) {
        give_turn(lane, 2u, first, vectors, quads);
        give_turn(lane, 3u, first, vectors, quads);
    }
}
