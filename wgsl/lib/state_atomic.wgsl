// Scratch memory of 32-bit words that workgroups of a dispatch share.

@group(0) @binding(3) var<storage, read_write> state: array<atomic<u32>>;

fn state_word(index: u32) -> u32 {
    return atomicLoad(&state[index]);
}

fn set_state_word(index: u32, value: u32) {
    atomicStore(&state[index], value);
}
