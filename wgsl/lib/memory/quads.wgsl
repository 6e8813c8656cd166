// Between vectors of 16 bytes and a run of neighbouring elements, which takes 1, 2, 4 or 8 of them.

alias Quads = array<vec4<u32>, 8>;

fn half_of(word: u32, upper: u32) -> Accumulator {
    return decode(vec2<u32>(extractBits(word, 16u * upper, 16u), 0u));
}

fn byte_of(word: u32, number: u32) -> Accumulator {
    return decode(vec2<u32>(extractBits(word, 8u * number, 8u), 0u));
}

fn of_word(word: u32) -> Accumulator {
    return decode(vec2<u32>(word, 0u));
}

fn run_of_quads(q: Quads) -> Run {
    if (input_log2_bits == 3u) {
        let a = q[0];
        return Run(
            byte_of(a.x, 0u), byte_of(a.x, 1u), byte_of(a.x, 2u), byte_of(a.x, 3u),
            byte_of(a.y, 0u), byte_of(a.y, 1u), byte_of(a.y, 2u), byte_of(a.y, 3u),
            byte_of(a.z, 0u), byte_of(a.z, 1u), byte_of(a.z, 2u), byte_of(a.z, 3u),
            byte_of(a.w, 0u), byte_of(a.w, 1u), byte_of(a.w, 2u), byte_of(a.w, 3u),
        );
    }
    if (input_log2_bits == 4u) {
        let a = q[0];
        let b = q[1];
        return Run(
            half_of(a.x, 0u), half_of(a.x, 1u), half_of(a.y, 0u), half_of(a.y, 1u),
            half_of(a.z, 0u), half_of(a.z, 1u), half_of(a.w, 0u), half_of(a.w, 1u),
            half_of(b.x, 0u), half_of(b.x, 1u), half_of(b.y, 0u), half_of(b.y, 1u),
            half_of(b.z, 0u), half_of(b.z, 1u), half_of(b.w, 0u), half_of(b.w, 1u),
        );
    }
    if (input_log2_bits == 5u) {
        return Run(
            of_word(q[0].x), of_word(q[0].y), of_word(q[0].z), of_word(q[0].w),
            of_word(q[1].x), of_word(q[1].y), of_word(q[1].z), of_word(q[1].w),
            of_word(q[2].x), of_word(q[2].y), of_word(q[2].z), of_word(q[2].w),
            of_word(q[3].x), of_word(q[3].y), of_word(q[3].z), of_word(q[3].w),
        );
    }
    return Run(
        decode(q[0].xy), decode(q[0].zw),
        decode(q[1].xy), decode(q[1].zw),
        decode(q[2].xy), decode(q[2].zw),
        decode(q[3].xy), decode(q[3].zw),
        decode(q[4].xy), decode(q[4].zw),
        decode(q[5].xy), decode(q[5].zw),
        decode(q[6].xy), decode(q[6].zw),
        decode(q[7].xy), decode(q[7].zw),
    );
}

fn bytes_of(a: Accumulator, b: Accumulator, c: Accumulator, d: Accumulator) -> u32 {
    let low = (encode(a).x & 0xffu) | ((encode(b).x & 0xffu) << 8u);
    return low | ((encode(c).x & 0xffu) << 16u) | (encode(d).x << 24u);
}

fn halves_of(a: Accumulator, b: Accumulator) -> u32 {
    return (encode(a).x & 0xffffu) | (encode(b).x << 16u);
}

fn words_of(a: Accumulator, b: Accumulator, c: Accumulator, d: Accumulator) -> vec4<u32> {
    return vec4<u32>(encode(a).x, encode(b).x, encode(c).x, encode(d).x);
}

fn quads_of_run(run: Run) -> Quads {
    var q: Quads;
    if (output_log2_bits == 3u) {
        q[0] = vec4<u32>(
            bytes_of(run[0], run[1], run[2], run[3]), bytes_of(run[4], run[5], run[6], run[7]),
            bytes_of(run[8], run[9], run[10], run[11]), bytes_of(run[12], run[13], run[14], run[15]),
        );
    } else if (output_log2_bits == 4u) {
        q[0] = vec4<u32>(
            halves_of(run[0], run[1]), halves_of(run[2], run[3]),
            halves_of(run[4], run[5]), halves_of(run[6], run[7]),
        );
        q[1] = vec4<u32>(
            halves_of(run[8], run[9]), halves_of(run[10], run[11]),
            halves_of(run[12], run[13]), halves_of(run[14], run[15]),
        );
    } else if (output_log2_bits == 5u) {
        q[0] = words_of(run[0], run[1], run[2], run[3]);
        q[1] = words_of(run[4], run[5], run[6], run[7]);
        q[2] = words_of(run[8], run[9], run[10], run[11]);
        q[3] = words_of(run[12], run[13], run[14], run[15]);
    } else {
        q[0] = vec4<u32>(encode(run[0]), encode(run[1]));
        q[1] = vec4<u32>(encode(run[2]), encode(run[3]));
        q[2] = vec4<u32>(encode(run[4]), encode(run[5]));
        q[3] = vec4<u32>(encode(run[6]), encode(run[7]));
        q[4] = vec4<u32>(encode(run[8]), encode(run[9]));
        q[5] = vec4<u32>(encode(run[10]), encode(run[11]));
        q[6] = vec4<u32>(encode(run[12]), encode(run[13]));
        q[7] = vec4<u32>(encode(run[14]), encode(run[15]));
    }
    return q;
}
