// Accumulators in scratch memory, their words `stride` apart. Needs lib/memory/state.wgsl or
// lib/memory/state_atomic.wgsl.

fn get_accumulator(word: u32, stride: u32) -> Accumulator {
    var words = vec2<u32>(state_word(word), 0u);
    if (WORDS == 2u) {
        words.y = state_word(word + stride);
    }
    return of_words(words);
}

fn put_accumulator(word: u32, stride: u32, value: Accumulator) {
    let words = to_words(value);
    set_state_word(word, words.x);
    if (WORDS == 2u) {
        set_state_word(word + stride, words.y);
    }
}
