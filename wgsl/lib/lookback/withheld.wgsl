// For tests: some workgroups wait and then keep to themselves what others wait for, as if they had been stopped.
// Needs lib/memory/state_atomic.wgsl.

// About one in so many; 0 for none.
override withhold_every: u32 = 0u;

const DELAY = 20000u;

fn is_withheld(ticket: u32) -> bool {
    return withhold_every != 0u && ((ticket * 2654435761u) >> 16u) % max(withhold_every, 1u) == 0u;
}

// Takes a while, if the workgroup with this ticket is such a one. `word` of scratch memory has no other use.
fn delay_withheld(ticket: u32, word: u32) {
    let delay = select(0u, DELAY, is_withheld(ticket));
    for (var i = 0u; i < delay; i += 1u) {
        atomicAdd(&state[word], 1u);
    }
}
