// Slot <output>: elements of 8 or 16 bits, packed in words that other invocations and other tensors share.
//
// Only one invocation changes an element's bits, so reading them needs no order. XOR with the difference leaves the
// neighbours' bits as they are, whatever happens to them meanwhile.

override output_log2_bits: u32 = 3u;

#import "lib/memory/unit_word.wgsl"

@group(0) @binding(2) var<storage, read_write> output_units: array<atomic<u32>>;

fn output_unit(index: u32) -> Unit {
    return atomicLoad(&output_units[index]);
}

// Puts a word that no other invocation has a part of.
fn put_whole_word(index: u32, bits: u32) {
    atomicStore(&output_units[index], bits);
}

// Puts the bits of `mask` into a word of which other invocations have a part. None of them changes these.
fn change_bits(index: u32, bits: u32, mask: u32) {
    change_from(index, output_unit(index), bits, mask);
}

// The same where the word was read before, as `old`.
fn change_from(index: u32, old: u32, bits: u32, mask: u32) {
    let changed = (old ^ bits) & mask;
    if (changed != 0u) {
        atomicXor(&output_units[index], changed);
    }
}

// The same, or puts a whole word.
fn put_bits(index: u32, bits: u32, mask: u32) {
    if (mask == 0xffffffffu) {
        put_whole_word(index, bits);
    } else {
        change_bits(index, bits, mask);
    }
}

// What there is of a word, if others have a part of it.
fn shared_word(index: u32, mask: u32) -> u32 {
    var old = 0u;
    if (mask != 0xffffffffu && mask != 0u) {
        old = output_unit(index);
    }
    return old;
}

// Puts the bits of `mask`, where the word was read before, as `old`, if it is shared.
fn put_word(index: u32, old: u32, bits: u32, mask: u32) {
    if (mask == 0xffffffffu) {
        put_whole_word(index, bits);
    } else {
        change_from(index, old, bits, mask);
    }
}

fn store_bits(element: u32, bits: vec2<u32>) {
    let index = element >> (5u - min(output_log2_bits, 5u));
    let width = 1u << output_log2_bits;
    let offset = (element << output_log2_bits) & 31u;
    let old = extractBits(output_unit(index), offset, width);
    let changed = extractBits(old ^ bits.x, 0u, width);
    if (changed != 0u) {
        atomicXor(&output_units[index], changed << offset);
    }
}
