// Slot <reads>: a run of neighbouring elements, 16 bytes at a time: places are multiples of that, `stride` is 1.

fn half_of(word: u32, upper: u32) -> vec2<u32> {
    return vec2<u32>(extractBits(word, 16u * upper, 16u), 0u);
}

fn byte_of(word: u32, number: u32) -> vec2<u32> {
    return vec2<u32>(extractBits(word, 8u * number, 8u), 0u);
}

fn of_word(word: u32) -> Accumulator {
    return decode(vec2<u32>(word, 0u));
}

// The `count` elements (1 to 16) from `place` on; what follows them is without meaning.
fn load_run(place: u32, stride: u32, count: u32) -> Run {
    let first = place >> (7u - input_log2_bits);
    let last = ((count << input_log2_bits) - 1u) >> 7u;
    let a = input_quad(first);
    if (input_log2_bits == 3u) {
        return Run(
            decode(byte_of(a.x, 0u)), decode(byte_of(a.x, 1u)), decode(byte_of(a.x, 2u)), decode(byte_of(a.x, 3u)),
            decode(byte_of(a.y, 0u)), decode(byte_of(a.y, 1u)), decode(byte_of(a.y, 2u)), decode(byte_of(a.y, 3u)),
            decode(byte_of(a.z, 0u)), decode(byte_of(a.z, 1u)), decode(byte_of(a.z, 2u)), decode(byte_of(a.z, 3u)),
            decode(byte_of(a.w, 0u)), decode(byte_of(a.w, 1u)), decode(byte_of(a.w, 2u)), decode(byte_of(a.w, 3u)),
        );
    }
    let b = input_quad(first + min(1u, last));
    if (input_log2_bits == 4u) {
        return Run(
            decode(half_of(a.x, 0u)), decode(half_of(a.x, 1u)), decode(half_of(a.y, 0u)), decode(half_of(a.y, 1u)),
            decode(half_of(a.z, 0u)), decode(half_of(a.z, 1u)), decode(half_of(a.w, 0u)), decode(half_of(a.w, 1u)),
            decode(half_of(b.x, 0u)), decode(half_of(b.x, 1u)), decode(half_of(b.y, 0u)), decode(half_of(b.y, 1u)),
            decode(half_of(b.z, 0u)), decode(half_of(b.z, 1u)), decode(half_of(b.w, 0u)), decode(half_of(b.w, 1u)),
        );
    }
    let c = input_quad(first + min(2u, last));
    let d = input_quad(first + min(3u, last));
    if (input_log2_bits == 5u) {
        return Run(
            of_word(a.x), of_word(a.y), of_word(a.z), of_word(a.w),
            of_word(b.x), of_word(b.y), of_word(b.z), of_word(b.w),
            of_word(c.x), of_word(c.y), of_word(c.z), of_word(c.w),
            of_word(d.x), of_word(d.y), of_word(d.z), of_word(d.w),
        );
    }
    let e = input_quad(first + min(4u, last));
    let f = input_quad(first + min(5u, last));
    let g = input_quad(first + min(6u, last));
    let h = input_quad(first + min(7u, last));
    return Run(
        decode(a.xy), decode(a.zw),
        decode(b.xy), decode(b.zw),
        decode(c.xy), decode(c.zw),
        decode(d.xy), decode(d.zw),
        decode(e.xy), decode(e.zw),
        decode(f.xy), decode(f.zw),
        decode(g.xy), decode(g.zw),
        decode(h.xy), decode(h.zw),
    );
}
