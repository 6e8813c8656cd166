// The lengths of the canonical order 16-16-16-16, as powers of two. An element's place in the slice tells which terms
// its prefix has. A missing term is skipped, never replaced by the identity, so that -0 survives.

const FANOUT = 16u;
const RUN_SHIFT = 4u;      // 16 elements
const BLOCK_SHIFT = 8u;    // 256
const TILE_SHIFT = 12u;    // 4096
const TILE = 4096u;

// Returns a combined with b if a is present, else b. Operands are checked, and so is the result.
fn append(present: bool, a: Accumulator, b: Accumulator) -> Accumulator {
    if (present) {
        return link(a, b);
    }
    return b;
}

// Two steps of Hillis-Steele at once, of `stride` and of twice as much, for run `j` of its block: one barrier, not two.
// `own` is what the run has, and the others what the runs have that are `stride`, and two and three times as much,
// before it; without meaning where there are none.
fn two_steps(
    j: u32, stride: u32, own: Accumulator, near: Accumulator, far: Accumulator, farther: Accumulator,
) -> Accumulator {
    return append(j >= 2u * stride, append(j >= 3u * stride, farther, far), append(j >= stride, near, own));
}
