// Slot <input>: the input tensor has a binding of its own, of the output's buffer. WebGPU tracks usage by buffer, so
// both bindings are read_write; their ranges don't meet.

@group(0) @binding(1) var<storage, read_write> input_words: array<u32>;

fn input_word(index: u32) -> u32 {
    return input_words[index];
}
