// Slot <output>: words that no two invocations share: elements of 32 or 64 bits, or adjacent ones of less, as many as
// are whole words.

override output_log2_bits: u32 = 5u;

#import "lib/memory/unit_word.wgsl"

@group(0) @binding(2) var<storage, read_write> output_units: array<Unit>;

fn output_unit(index: u32) -> Unit {
    return output_units[index];
}

fn set_output_unit(index: u32, unit: Unit) {
    output_units[index] = unit;
}

// Of elements that are whole words.
fn store_bits(element: u32, bits: vec2<u32>) {
    if (output_log2_bits == 6u) {
        output_units[2u * element] = bits.x;
        output_units[2u * element + 1u] = bits.y;
    } else {
        output_units[element] = bits.x;
    }
}

// Puts the bits of `mask` into a word: all of it, as no element is smaller.
fn put_bits(index: u32, bits: u32, mask: u32) {
    store_bits(index, vec2<u32>(bits, 0u));
}
