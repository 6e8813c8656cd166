// What lib/order/exceptional.wgsl asks of an element type, for integers: none of them is exceptional.

const EXCEPTIONS = false;
const INFINITE = 0xffffffffu;
const NORMAL = 0u;
const ONE = 1u;
const EXPONENT_SHIFT = 0u;
const EXPONENT_BIAS = 0;
