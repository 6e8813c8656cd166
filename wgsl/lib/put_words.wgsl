// Adjacent elements of 8 or 16 bits, as they lie in up to four words, put anywhere in memory. The first word there and
// the last, of which other invocations have a part, take an atomic. Needs output_packed.

// Puts the first `count` elements of some at `place` and behind it.
fn put_words(place: u32, count: u32, words: vec4<u32>) {
    let index = place >> (5u - output_log2_bits);
    let shift = (place << output_log2_bits) & 31u;
    let end = shift + (count << output_log2_bits);
    let rest = vec4<u32>((32u - shift) & 31u);
    let behind = select(words >> rest, vec4<u32>(0u), shift == 0u);
    let here = (words << vec4<u32>(shift)) | vec4<u32>(0u, behind.xyz);
    if (shift == 0u && end >= 32u) {
        put_whole_word(index, here.x);
    }
    if (end >= 64u) {
        put_whole_word(index + 1u, here.y);
    }
    if (end >= 96u) {
        put_whole_word(index + 2u, here.z);
    }
    if (end >= 128u) {
        put_whole_word(index + 3u, here.w);
    }
    let tail = 0xffffffffu >> ((32u - end) & 31u); // the bits there are of the last word
    if (count > 0u && (shift > 0u || end < 32u)) {
        put_bits(index, here.x, (0xffffffffu << shift) & select(tail, 0xffffffffu, end >= 32u));
    }
    if (end > 32u && (end & 31u) > 0u) {
        let last = select(select(select(here.y, here.z, end > 64u), here.w, end > 96u), behind.w, end > 128u);
        put_bits(index + (end >> 5u), last, tail);
    }
}
