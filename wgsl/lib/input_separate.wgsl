// Slot <input>: the input tensor has a binding of its own.

@group(0) @binding(1) var<storage, read> input_words: array<u32>;

fn input_word(index: u32) -> u32 {
    return input_words[index];
}
