// Slot <vector>: adjacent integers of a row in four whole words, at any place in memory. Needs slots/output/words.wgsl.

// The words that so many integers take.
fn words_of(count: u32) -> u32 {
    if (input_log2_bits == 6u) {
        return 2u * count;
    }
    return count >> (5u - min(input_log2_bits, 5u));
}

// The words of the first `there` integers; for others one of these again.
fn load_vector(place: u32, there: u32) -> vec4<u32> {
    let index = words_of(place);
    let last = max(words_of(there), 1u) - 1u;
    return vec4<u32>(
        input_word(index),
        input_word(index + min(last, 1u)),
        input_word(index + min(last, 2u)),
        input_word(index + last),
    );
}

fn store_vector(place: u32, there: u32, words: vec4<u32>) {
    let index = words_of(place);
    let count = words_of(there);
    if (count > 0u) {
        set_output_unit(index, words.x);
    }
    if (count > 1u) {
        set_output_unit(index + 1u, words.y);
    }
    if (count > 2u) {
        set_output_unit(index + 2u, words.z);
    }
    if (count > 3u) {
        set_output_unit(index + 3u, words.w);
    }
}
