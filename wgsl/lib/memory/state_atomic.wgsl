// Scratch memory of 32-bit words that workgroups of a dispatch share.
//
// They are read and written by read-modify-writes, because workgroups wait for words of others. On Direct3D 12 and
// OpenGL naga makes plain accesses of atomicLoad and atomicStore; a compiler may move those out of a loop, and a
// cache may keep them from other workgroups.

@group(0) @binding(3) var<storage, read_write> state: array<atomic<u32>>;

fn state_word(index: u32) -> u32 {
    return atomicOr(&state[index], 0u);
}

fn set_state_word(index: u32, value: u32) {
    atomicExchange(&state[index], value);
}
