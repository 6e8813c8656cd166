// Slot <tile>: a tile by 256 invocations for GPUs, at any stride: neighbours read and write neighbouring elements,
// which go through workgroup memory into runs of 16 elements and back. Of elements of 8 or 16 bits without gaps,
// neighbours write neighbouring words.

#import "lib/tiles/fold.wgsl"
#import "lib/tiles/fold_blocks.wgsl"
#import "lib/tiles/turn_stage.wgsl"
#import "lib/tiles/turn_words.wgsl"

// The elements of an invocation in a turn: 8, or 4 of 64 bits.
alias Part = array<vec2<u32>, 8>;

// Element `number` of an invocation, of a tile of `count`; the last one again for those behind it.
fn fetch_bits(lane: u32, number: u32, input: u32, count: u32) -> vec2<u32> {
    return load_bits(input + min(number * LANES + lane, count - 1u) * params.input_axis_stride);
}

// All are on their way before the first is waited for. Of no use where the tile ends before the turn.
fn fetch_part(lane: u32, turn: u32, input: u32, count: u32) -> Part {
    let first = turn * (TURN / LANES);
    var part: Part;
    if (turn * TURN >= count) {
        return part;
    }
    part[0] = fetch_bits(lane, first, input, count);
    part[1] = fetch_bits(lane, first + 1u, input, count);
    part[2] = fetch_bits(lane, first + 2u, input, count);
    part[3] = fetch_bits(lane, first + 3u, input, count);
    if (input_log2_bits < 6u) {
        part[4] = fetch_bits(lane, first + 4u, input, count);
        part[5] = fetch_bits(lane, first + 5u, input, count);
        part[6] = fetch_bits(lane, first + 6u, input, count);
        part[7] = fetch_bits(lane, first + 7u, input, count);
    }
    return part;
}

// A turn on the way to runs: all leave their elements of the turn, those whose turn it is take a run.
fn take_turn(lane: u32, turn: u32, part: Part, before: Run) -> Run {
    workgroupBarrier();
    leave(lane, part[0]);
    leave(LANES + lane, part[1]);
    leave(2u * LANES + lane, part[2]);
    leave(3u * LANES + lane, part[3]);
    if (input_log2_bits < 6u) {
        leave(4u * LANES + lane, part[4]);
        leave(5u * LANES + lane, part[5]);
        leave(6u * LANES + lane, part[6]);
        leave(7u * LANES + lane, part[7]);
    }
    workgroupBarrier();
    if (lane / TURN_RUNS != turn) {
        return before;
    }
    let place = lane % TURN_RUNS * LANE_ELEMENTS;
    return Run(
        decode(bits_left(place)), decode(bits_left(place + 1u)),
        decode(bits_left(place + 2u)), decode(bits_left(place + 3u)),
        decode(bits_left(place + 4u)), decode(bits_left(place + 5u)),
        decode(bits_left(place + 6u)), decode(bits_left(place + 7u)),
        decode(bits_left(place + 8u)), decode(bits_left(place + 9u)),
        decode(bits_left(place + 10u)), decode(bits_left(place + 11u)),
        decode(bits_left(place + 12u)), decode(bits_left(place + 13u)),
        decode(bits_left(place + 14u)), decode(bits_left(place + 15u)),
    );
}

// The invocation's run of a tile of `count` elements; behind its end some element, without meaning.
fn load_lane(lane: u32, input: u32, count: u32) -> Run {
    let a = fetch_part(lane, 0u, input, count);
    let b = fetch_part(lane, 1u, input, count);
    var c: Part;
    var d: Part;
    if (input_log2_bits > 5u) {
        c = fetch_part(lane, 2u, input, count);
        d = fetch_part(lane, 3u, input, count);
    }
    var run: Run;
    run = take_turn(lane, 0u, a, run);
    run = take_turn(lane, 1u, b, run);
    if (input_log2_bits > 5u) {
        run = take_turn(lane, 2u, c, run);
        run = take_turn(lane, 3u, d, run);
    }
    return run;
}

// A turn on the way back: those whose turn it is leave a run, and all write elements of the turn, which has `count`.
fn give_turn(lane: u32, turn: u32, output: u32, count: u32, run: Run) {
    workgroupBarrier();
    if (lane / TURN_RUNS == turn) {
        let place = lane % TURN_RUNS * LANE_ELEMENTS;
        leave(place, encode(run[0]));
        leave(place + 1u, encode(run[1]));
        leave(place + 2u, encode(run[2]));
        leave(place + 3u, encode(run[3]));
        leave(place + 4u, encode(run[4]));
        leave(place + 5u, encode(run[5]));
        leave(place + 6u, encode(run[6]));
        leave(place + 7u, encode(run[7]));
        leave(place + 8u, encode(run[8]));
        leave(place + 9u, encode(run[9]));
        leave(place + 10u, encode(run[10]));
        leave(place + 11u, encode(run[11]));
        leave(place + 12u, encode(run[12]));
        leave(place + 13u, encode(run[13]));
        leave(place + 14u, encode(run[14]));
        leave(place + 15u, encode(run[15]));
    }
    workgroupBarrier();
    let stride = params.output_axis_stride;
    if (output_log2_bits < 5u && stride == 1u) {
        store_words(lane, output, count, 0u, 1u);
    } else if (output_log2_bits < 5u && stride == 0xffffffffu) {
        let last = count - min(1u, count);
        store_words(lane, output - last, count, last, stride);
    } else {
        for (var place = lane; place < count; place += LANES) {
            store_bits(output + place * stride, bits_left(place));
        }
    }
}

// The first `count` elements.
fn store_lane(lane: u32, output: u32, count: u32, run: Run) {
    for (var turn = 0u; turn < TILE / TURN; turn += 1u) {
        let first = min(turn * TURN, count);
        give_turn(lane, turn, output + first * params.output_axis_stride, min(count - first, TURN), run);
    }
}
