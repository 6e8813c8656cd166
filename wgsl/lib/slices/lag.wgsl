// How far an invocation stays behind its workgroup's first, so that neighbours are not at the same place of what each
// works through. Needs lib/order/order.wgsl.
//
// Tiles of 32-bit elements are 16 KiB apart, and rows of a matrix are often a power of two. All places that are 4 KiB
// apart share one set of a CPU's first cache, which has 8 lines: too few for those that 8 invocations read and write. A
// run apart, they use one set after the other.

override lags: bool = false;

// In elements.
fn lag_of(lane: u32) -> u32 {
    return select(0u, FANOUT * (lane % 8u), lags);
}
