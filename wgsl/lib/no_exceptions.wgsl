// What lib/exceptional.wgsl needs to know of integers: that none of them is exceptional.

const EXCEPTIONS = false;
const INFINITE = 0xffffffffu;
const NORMAL = 0u;
const ONE = 1u;
const EXPONENT_SHIFT = 0u;
const EXPONENT_BIAS = 0;
