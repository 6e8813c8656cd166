// Scratch memory of 32-bit words. An invocation reads what it has written itself, or what an earlier dispatch has: what
// others write in its own dispatch it may not see, behind a barrier either (docs/kernels.md, "What compilers need").

@group(0) @binding(3) var<storage, read_write> state: array<u32>;

fn state_word(index: u32) -> u32 {
    return state[index];
}

fn set_state_word(index: u32, value: u32) {
    state[index] = value;
}
