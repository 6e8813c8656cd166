// What goes from one tile of a slice to the next.

struct Carry {
    s: Accumulator,         // fold of the finished spans, if has_s
    c: Accumulator,         // fold of the finished tiles of the current span, if tiles > 0
    last: Accumulator,      // the last inclusive result, or the identity
    tiles: u32,
    has_s: bool,
}

// The flags of a carry: `tiles` and `has_s` as a word.
const HAS_S = 0x100u;

fn carry_flags(carry: Carry) -> u32 {
    return carry.tiles | select(0u, HAS_S, carry.has_s);
}

// Before tile `tile` of a slice, with no exceptional tile before it.
fn flags_before(tile: u32) -> u32 {
    return (tile % FANOUT) | select(0u, HAS_S, tile >= FANOUT);
}

fn carry_of(s: Accumulator, c: Accumulator, last: Accumulator, flags: u32) -> Carry {
    return Carry(s, c, last, flags & 0xffu, (flags & HAS_S) != 0u);
}

fn fresh_carry() -> Carry {
    return Carry(identity(), identity(), identity(), 0u, false);
}

// Whether results of the next tile go on from a base: s + c, each where present.
fn has_base(carry: Carry) -> bool {
    return carry.has_s | (carry.tiles > 0u);
}

fn base_of(carry: Carry) -> Accumulator {
    if (carry.tiles > 0u) {
        return append(carry.has_s, carry.s, carry.c);
    }
    return checked(carry.s);
}

// Whether only the classes of further elements count. Both s and the last result must absorb, because s can overflow
// where the results so far have not.
fn is_absorbed(carry: Carry) -> bool {
    let exceptions = is_exceptional(carry.s) & is_exceptional(carry.last);
    return carry.has_s & (exceptions | (is_absorbing(carry.s) & is_zero(carry.s) & is_zero(carry.last)));
}

// What follows a tile with these results.
fn carry_on(before: Carry, total: Accumulator, last: Accumulator) -> Carry {
    let c = append(before.tiles > 0u, before.c, total);
    if (before.tiles + 1u == FANOUT) {
        return Carry(append(before.has_s, before.s, c), c, last, 0u, true);
    }
    return Carry(before.s, c, last, before.tiles + 1u, before.has_s);
}

// What follows a tile whose results are a left fold that ended with `last`: a new span.
fn carry_exceptional(last: Accumulator) -> Carry {
    return Carry(last, last, last, 0u, true);
}
