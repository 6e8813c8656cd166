// Scratch memory of 32-bit words, each used by one invocation of a dispatch.

@group(0) @binding(3) var<storage, read_write> state: array<u32>;

fn state_word(index: u32) -> u32 {
    return state[index];
}

fn set_state_word(index: u32, value: u32) {
    state[index] = value;
}
