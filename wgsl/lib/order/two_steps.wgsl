// Two steps of Hillis-Steele at once, of `stride` and of twice as much, for run `j` of its block: one barrier, not
// two. Needs lib/order/order.wgsl.

// `own` is what the run has, and the others what the runs have that are `stride`, and two and three times as much,
// before it; without meaning where there are none.
fn two_steps(
    j: u32, stride: u32, own: Accumulator, near: Accumulator, far: Accumulator, farther: Accumulator,
) -> Accumulator {
    return append(j >= 2u * stride, append(j >= 3u * stride, farther, far), append(j >= stride, near, own));
}
