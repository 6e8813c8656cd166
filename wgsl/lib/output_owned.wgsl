// Slot <output>: elements of 8 or 16 bits, in words that one invocation has to itself.

override output_log2_bits: u32 = 3u;

#import "lib/unit_word.wgsl"

@group(0) @binding(2) var<storage, read_write> output_units: array<Unit>;

fn output_unit(index: u32) -> Unit {
    return output_units[index];
}

fn set_output_unit(index: u32, unit: Unit) {
    output_units[index] = unit;
}

fn store_bits(element: u32, bits: vec2<u32>) {
    let index = element >> (5u - min(output_log2_bits, 5u));
    let offset = (element << output_log2_bits) & 31u;
    output_units[index] = insertBits(output_units[index], bits.x, offset, 1u << min(output_log2_bits, 4u));
}
