// Slot <vector>: adjacent integers of 8 or 16 bits of a row, four words that begin anywhere in a word of memory, of
// which others may have a part. Needs slots/output/packed.wgsl.

#import "lib/memory/put_words.wgsl"

// The first `there` integers; what is behind them has no meaning.
fn load_vector(place: u32, there: u32) -> vec4<u32> {
    let in_word = 5u - input_log2_bits;
    let index = place >> in_word;
    let last = (place + max(there, 1u) - 1u) >> in_word;
    let shift = (place << input_log2_bits) & 31u;
    let low = vec4<u32>(
        input_word(index),
        input_word(min(index + 1u, last)),
        input_word(min(index + 2u, last)),
        input_word(min(index + 3u, last)),
    );
    if (shift == 0u) {
        return low;
    }
    let high = vec4<u32>(low.yzw, input_word(last));
    return (low >> vec4<u32>(shift)) | (high << vec4<u32>(32u - shift));
}

fn store_vector(place: u32, there: u32, words: vec4<u32>) {
    put_words(place, there, words);
}
