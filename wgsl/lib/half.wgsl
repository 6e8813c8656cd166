// Conversions between the bit patterns of binary16 and binary32 in integer arithmetic, because the built-ins leave
// subnormals, infinities and NaN to the implementation.

// Without branches: software drivers go through both sides of each, and a GPU's invocations may take both.

// Exact.
fn half_to_float(half: u32) -> u32 {
    let sign = (half & 0x8000u) << 16u;
    let magnitude = half & 0x7fffu;
    let normal = (magnitude << 13u) + select(0x38000000u, 0x70000000u, magnitude >= 0x7c00u);
    // The significand's leading bit, shifted to its place, adds one to the exponent.
    let top = firstLeadingBit(magnitude | 1u);
    let subnormal = ((top + 102u) << 23u) + (magnitude << (23u - min(top, 23u)));
    return sign | select(select(subnormal, 0u, magnitude == 0u), normal, magnitude >= 0x400u);
}

// To nearest, ties to even; overflow gives infinity, every NaN a quiet one.
fn float_to_half(bits: u32) -> u32 {
    let sign = (bits >> 16u) & 0x8000u;
    let magnitude = bits & 0x7fffffffu;
    let rounded = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u;
    let normal = min(rounded, 0x7c00u);
    let significand = (magnitude & 0x7fffffu) | 0x800000u;
    let shift = clamp(126u - (magnitude >> 23u), 1u, 25u);
    let odd = (significand >> shift) & 1u;
    let subnormal = (significand + (1u << (shift - 1u)) - 1u + odd) >> shift;
    let finite = select(subnormal, normal, magnitude >= 0x38800000u);
    return sign | select(finite, 0x7e00u, magnitude > 0x7f800000u);
}
