// 64-bit integers as pairs of u32, low word first: one path for every device.

fn add64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn negate64(a: vec2<u32>) -> vec2<u32> {
    return add64(~a, vec2<u32>(1u, 0u));
}

// The high word of a 32 x 32 bit product, by halves.
fn multiply_high(a: u32, b: u32) -> u32 {
    let a_low = a & 0xffffu;
    let a_high = a >> 16u;
    let b_low = b & 0xffffu;
    let b_high = b >> 16u;
    let middle = a_high * b_low + ((a_low * b_low) >> 16u);
    let cross = a_low * b_high + (middle & 0xffffu);
    return a_high * b_high + (middle >> 16u) + (cross >> 16u);
}

// The low 64 bits of the product.
fn multiply64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(a.x * b.x, multiply_high(a.x, b.x) + a.x * b.y + a.y * b.x);
}

// Shifts by 0 to 63; more gives 0.
fn shift_left64(a: vec2<u32>, n: u32) -> vec2<u32> {
    if (n == 0u) {
        return a;
    }
    if (n < 32u) {
        return vec2<u32>(a.x << n, (a.y << n) | (a.x >> (32u - n)));
    }
    return select(vec2<u32>(0u), vec2<u32>(0u, a.x << (n & 31u)), n < 64u);
}

fn shift_right64(a: vec2<u32>, n: u32) -> vec2<u32> {
    if (n == 0u) {
        return a;
    }
    if (n < 32u) {
        return vec2<u32>((a.x >> n) | (a.y << (32u - n)), a.y >> n);
    }
    return select(vec2<u32>(0u), vec2<u32>(a.y >> (n & 31u), 0u), n < 64u);
}

// The position of the highest set bit of a nonzero value. firstLeadingBit is wrong where naga writes Metal's language.
fn top_bit64(a: vec2<u32>) -> u32 {
    return select(31u - countLeadingZeros(a.x), 63u - countLeadingZeros(a.y), a.y != 0u);
}

fn less64(a: vec2<u32>, b: vec2<u32>) -> bool {
    return (a.y < b.y) | ((a.y == b.y) & (a.x < b.x));
}

fn is_zero64(a: vec2<u32>) -> bool {
    return (a.x | a.y) == 0u;
}

// a / 2^n to nearest, ties to even; n may be of any size.
fn shift_right_round64(a: vec2<u32>, n: u32) -> vec2<u32> {
    if (n == 0u) {
        return a;
    }
    if (n > 64u) {
        return vec2<u32>(0u);
    }
    let quotient = shift_right64(a, n);
    let half = shift_left64(vec2<u32>(1u, 0u), n - 1u);
    let rest = a & add64(shift_left64(half, 1u), vec2<u32>(0xffffffffu, 0xffffffffu));
    let up = less64(half, rest) | (all(half == rest) & ((quotient.x & 1u) == 1u));
    return add64(quotient, vec2<u32>(select(0u, 1u, up), 0u));
}
