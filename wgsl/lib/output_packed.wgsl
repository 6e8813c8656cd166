// Slot <output>: elements of 8 or 16 bits, packed in words that other invocations and other tensors share.
//
// Only one invocation changes an element's bits, so reading them needs no order. XOR with the difference leaves the
// neighbours' bits as they are, whatever happens to them meanwhile.

override output_log2_bits: u32 = 3u;

@group(0) @binding(2) var<storage, read_write> output_words: array<atomic<u32>>;

fn output_word(index: u32) -> u32 {
    return atomicLoad(&output_words[index]);
}

// Puts the bits of `mask` into a word. No other invocation changes these.
fn put_bits(index: u32, bits: u32, mask: u32) {
    if (mask == 0xffffffffu) {
        atomicStore(&output_words[index], bits);
        return;
    }
    let changed = (output_word(index) ^ bits) & mask;
    if (changed != 0u) {
        atomicXor(&output_words[index], changed);
    }
}

fn store_bits(element: u32, bits: vec2<u32>) {
    let index = element >> (5u - min(output_log2_bits, 5u));
    let width = 1u << output_log2_bits;
    let offset = (element << output_log2_bits) & 31u;
    let old = extractBits(output_word(index), offset, width);
    let changed = extractBits(old ^ bits.x, 0u, width);
    if (changed != 0u) {
        atomicXor(&output_words[index], changed << offset);
    }
}
