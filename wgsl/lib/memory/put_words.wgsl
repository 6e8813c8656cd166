// Adjacent elements of 8 or 16 bits, as they lie in up to eight words, put anywhere in memory. The first word there and
// the last, of which other invocations have a part, take an atomic. Needs slots/output/packed.wgsl.

// Words moved up by some bits, where they then lie in words of memory.
struct Moved {
    here: vec4<u32>,
    behind: u32,           // what reaches into the next word
}

// `before` is what reaches into the first from the words before them.
fn moved(words: vec4<u32>, shift: u32, before: u32) -> Moved {
    let rest = vec4<u32>((32u - shift) & 31u);
    let above = select(words >> rest, vec4<u32>(0u), shift == 0u);
    return Moved((words << vec4<u32>(shift)) | vec4<u32>(before, above.xyz), above.w);
}

// Puts those of four words of memory that are whole: the bits from `shift` on and before `end` are there.
fn put_whole_words(index: u32, shift: u32, end: u32, words: vec4<u32>) {
    if (shift == 0u && end >= 32u) {
        put_whole_word(index, words.x);
    }
    if (end >= 64u) {
        put_whole_word(index + 1u, words.y);
    }
    if (end >= 96u) {
        put_whole_word(index + 2u, words.z);
    }
    if (end >= 128u) {
        put_whole_word(index + 3u, words.w);
    }
}

// Puts the parts of words at both ends of so many bits: `first` is the first word, and `last` the one that they end in.
fn put_ends(index: u32, shift: u32, end: u32, first: u32, last: u32) {
    let tail = 0xffffffffu >> ((32u - end) & 31u); // the bits there are of the last word
    if (end > shift && (shift > 0u || end < 32u)) {
        change_bits(index, first, (0xffffffffu << shift) & select(tail, 0xffffffffu, end >= 32u));
    }
    if (end > 32u && (end & 31u) > 0u) {
        change_bits(index + (end >> 5u), last, tail);
    }
}

// The word of these that bits end in, the last of which is before `end`.
fn word_at(end: u32, x: Moved) -> u32 {
    let low = select(x.here.x, x.here.y, end > 32u);
    return select(select(select(low, x.here.z, end > 64u), x.here.w, end > 96u), x.behind, end > 128u);
}

// Puts the first `count` elements of four words at `place` and behind it.
fn put_words(place: u32, count: u32, words: vec4<u32>) {
    let index = place >> (5u - output_log2_bits);
    let shift = (place << output_log2_bits) & 31u;
    let end = shift + (count << output_log2_bits);
    let x = moved(words, shift, 0u);
    put_whole_words(index, shift, end, x.here);
    put_ends(index, shift, end, x.here.x, word_at(end, x));
}

// The same of eight words.
fn put_eight_words(place: u32, count: u32, low: vec4<u32>, high: vec4<u32>) {
    let index = place >> (5u - output_log2_bits);
    let shift = (place << output_log2_bits) & 31u;
    let end = shift + (count << output_log2_bits);
    let x = moved(low, shift, 0u);
    let y = moved(high, shift, x.behind);
    let end_of_high = max(end, 128u) - 128u;
    put_whole_words(index, shift, end, x.here);
    put_whole_words(index + 4u, 0u, end_of_high, y.here);
    put_ends(index, shift, end, x.here.x, select(word_at(end, x), word_at(end_of_high, y), end > 128u));
}
