// The lengths of the canonical order 16-16-16-16, as powers of two. An element's place in the slice tells which terms
// its prefix has. A missing term is skipped, never replaced by the identity, so that -0 survives.

const FANOUT = 16u;
const RUN_SHIFT = 4u;      // 16 elements
const BLOCK_SHIFT = 8u;    // 256
const TILE_SHIFT = 12u;    // 4096
const SPAN_SHIFT = 16u;    // 65,536
const TILE = 4096u;

// Returns a combined with b if a is present, else b. Operands are checked, and so is the result.
fn append(present: bool, a: Accumulator, b: Accumulator) -> Accumulator {
    if (present) {
        return link(a, b);
    }
    return b;
}
