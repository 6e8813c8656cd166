// Slot <writes>: a run of neighbouring elements, 16 bytes at a time: places are multiples of that, `stride` is 1, and
// `count` elements fill whole quads. Needs output_quads.

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

// Stores the first `count` members.
fn store_run(place: u32, stride: u32, count: u32, run: Run) {
    let first = place >> (7u - output_log2_bits);
    if (output_log2_bits == 3u) {
        if (count > 0u) {
            store_quad(first, vec4<u32>(
                bytes_of(run[0], run[1], run[2], run[3]),
                bytes_of(run[4], run[5], run[6], run[7]),
                bytes_of(run[8], run[9], run[10], run[11]),
                bytes_of(run[12], run[13], run[14], run[15]),
            ));
        }
        return;
    }
    if (output_log2_bits == 4u) {
        if (count > 0u) {
            store_quad(first, vec4<u32>(
                halves_of(run[0], run[1]), halves_of(run[2], run[3]),
                halves_of(run[4], run[5]), halves_of(run[6], run[7]),
            ));
        }
        if (count > 8u) {
            store_quad(first + 1u, vec4<u32>(
                halves_of(run[8], run[9]), halves_of(run[10], run[11]),
                halves_of(run[12], run[13]), halves_of(run[14], run[15]),
            ));
        }
        return;
    }
    if (output_log2_bits == 5u) {
        if (count > 0u) {
            store_quad(first, words_of(run[0], run[1], run[2], run[3]));
        }
        if (count > 4u) {
            store_quad(first + 1u, words_of(run[4], run[5], run[6], run[7]));
        }
        if (count > 8u) {
            store_quad(first + 2u, words_of(run[8], run[9], run[10], run[11]));
        }
        if (count > 12u) {
            store_quad(first + 3u, words_of(run[12], run[13], run[14], run[15]));
        }
        return;
    }
    if (count > 0u) {
        store_quad(first, vec4<u32>(encode(run[0]), encode(run[1])));
    }
    if (count > 2u) {
        store_quad(first + 1u, vec4<u32>(encode(run[2]), encode(run[3])));
    }
    if (count > 4u) {
        store_quad(first + 2u, vec4<u32>(encode(run[4]), encode(run[5])));
    }
    if (count > 6u) {
        store_quad(first + 3u, vec4<u32>(encode(run[6]), encode(run[7])));
    }
    if (count > 8u) {
        store_quad(first + 4u, vec4<u32>(encode(run[8]), encode(run[9])));
    }
    if (count > 10u) {
        store_quad(first + 5u, vec4<u32>(encode(run[10]), encode(run[11])));
    }
    if (count > 12u) {
        store_quad(first + 6u, vec4<u32>(encode(run[12]), encode(run[13])));
    }
    if (count > 14u) {
        store_quad(first + 7u, vec4<u32>(encode(run[14]), encode(run[15])));
    }
}
