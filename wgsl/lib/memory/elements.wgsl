// Elements of the tensors in the accumulator type: needs <input> and <element>.

#import "lib/memory/load_bits.wgsl"
#import <element>

fn load(element: u32) -> Accumulator {
    return decode(load_bits(element));
}
