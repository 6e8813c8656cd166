// Conversions between the bit patterns of binary16 and binary32 in integer arithmetic, because the built-ins leave
// subnormals, infinities and NaN to the implementation.

// Exact.
fn half_to_float(half: u32) -> u32 {
    let sign = (half & 0x8000u) << 16u;
    let magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00u) {
        return sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13u);
    }
    if (magnitude >= 0x400u) {
        return sign | ((magnitude << 13u) + 0x38000000u);
    }
    if (magnitude == 0u) {
        return sign;
    }
    let top = firstLeadingBit(magnitude);
    return sign | ((top + 103u) << 23u) | ((magnitude << (23u - top)) & 0x7fffffu);
}

// To nearest, ties to even; overflow gives infinity, every NaN a quiet one.
fn float_to_half(bits: u32) -> u32 {
    let sign = (bits >> 16u) & 0x8000u;
    let magnitude = bits & 0x7fffffffu;
    if (magnitude >= 0x7f800000u) {
        return sign | select(0x7c00u, 0x7e00u, magnitude > 0x7f800000u);
    }
    if (magnitude >= 0x38800000u) {
        let rounded = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u;
        return sign | min(rounded, 0x7c00u);
    }
    let exponent = magnitude >> 23u;
    if (exponent < 102u) {
        return sign;
    }
    let significand = (magnitude & 0x7fffffu) | 0x800000u;
    let shift = 126u - exponent;
    let odd = (significand >> shift) & 1u;
    return sign | ((significand + (1u << (shift - 1u)) - 1u + odd) >> shift);
}
