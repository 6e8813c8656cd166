// Integers of 8 to 64 bits as they lie in four words. Signed and unsigned agree. Needs <input> and <output>.

#import "lib/arithmetic/int64.wgsl"

override product: bool = false;

fn identity_words() -> vec4<u32> {
    if (!product) {
        return vec4<u32>(0u);
    }
    if (input_log2_bits == 6u) {
        return vec4<u32>(1u, 0u, 1u, 0u);
    }
    return vec4<u32>(select(select(1u, 0x10001u, input_log2_bits == 4u), 0x1010101u, input_log2_bits == 3u));
}

fn combine_words(a: vec4<u32>, b: vec4<u32>) -> vec4<u32> {
    if (product) {
        return multiply_words(a, b);
    }
    if (input_log2_bits == 6u) {
        return vec4<u32>(add64(a.xy, b.xy), add64(a.zw, b.zw));
    }
    if (input_log2_bits == 5u) {
        return a + b;
    }
    // The top bit of each element apart, so that nothing is carried to its neighbour.
    let top = select(0x80808080u, 0x80008000u, input_log2_bits == 4u);
    return ((a & vec4<u32>(~top)) + (b & vec4<u32>(~top))) ^ ((a ^ b) & vec4<u32>(top));
}

fn multiply_words(a: vec4<u32>, b: vec4<u32>) -> vec4<u32> {
    if (input_log2_bits == 6u) {
        return vec4<u32>(multiply64(a.xy, b.xy), multiply64(a.zw, b.zw));
    }
    if (input_log2_bits == 5u) {
        return a * b;
    }
    let low = vec4<u32>(0xffffu);
    let halves = vec4<u32>(16u);
    if (input_log2_bits == 4u) {
        return ((a * b) & low) | (((a >> halves) * (b >> halves)) << halves);
    }
    let byte = vec4<u32>(0xffu);
    let one = vec4<u32>(8u);
    let three = vec4<u32>(24u);
    return ((a * b) & byte)
        | ((((a >> one) * (b >> one)) & byte) << one)
        | ((((a >> halves) * (b >> halves)) & byte) << halves)
        | (((a >> three) * (b >> three)) << three);
}
