// Slot <element>: integers of 64 bits as pairs of u32. Signed and unsigned agree.

#import "lib/arithmetic/int64.wgsl"
#import "lib/arithmetic/no_exceptions.wgsl"
#import "lib/arithmetic/words64.wgsl"

override product: bool = false;

fn identity() -> Accumulator {
    return vec2<u32>(select(0u, 1u, product), 0u);
}

fn combine(a: Accumulator, b: Accumulator) -> Accumulator {
    if (product) {
        return multiply64(a, b);
    }
    return add64(a, b);
}

#import "lib/arithmetic/no_sizes.wgsl"
