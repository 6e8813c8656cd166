// Slot <stage>: elements of 8 or 16 bits in workgroup memory, in the order of memory. Runs of several invocations share
// words, so each changes the bits of its own elements alone, by their difference (as slots/output/packed.wgsl does).

#import "lib/memory/quads.wgsl"

var<workgroup> stage: array<atomic<u32>, 2048>;

// Keeps neighbours out of each other's banks of memory, whether they have neighbouring vectors or neighbouring runs.
fn on_stage(word: u32) -> u32 {
    return (word ^ ((word >> 5u) & 31u)) & 2047u;
}

fn leave_vector(number: u32, words: vec4<u32>) {
    let word = 4u * number;
    atomicStore(&stage[on_stage(word)], words.x);
    atomicStore(&stage[on_stage(word + 1u)], words.y);
    atomicStore(&stage[on_stage(word + 2u)], words.z);
    atomicStore(&stage[on_stage(word + 3u)], words.w);
}

fn vector_left(number: u32) -> vec4<u32> {
    return words_left(4u * number, 0u);
}

// The 32 bits from bit `shift` of a word on.
fn word_left(word: u32, shift: u32) -> u32 {
    let low = atomicLoad(&stage[on_stage(word)]);
    let high = atomicLoad(&stage[on_stage(word + 1u)]);
    return (low >> shift) | ((high << 1u) << (31u - shift));
}

fn words_left(word: u32, shift: u32) -> vec4<u32> {
    return vec4<u32>(
        word_left(word, shift), word_left(word + 1u, shift), word_left(word + 2u, shift), word_left(word + 3u, shift),
    );
}

fn quads_left(place: u32) -> Quads {
    let bit = place << input_log2_bits;
    var quads: Quads;
    quads[0] = words_left(bit >> 5u, bit & 31u);
    if (input_log2_bits > 3u) {
        quads[1] = words_left((bit >> 5u) + 4u, bit & 31u);
    }
    return quads;
}

// The run at element `place`; what follows its `count` elements is without meaning.
fn load_run(place: u32, stride: u32, count: u32) -> Run {
    return run_of_quads(quads_left(place));
}

// Changes the first `count` of 32 bits by `difference`, from bit `shift` of a word on.
fn change_word(word: u32, shift: u32, count: u32, difference: u32) {
    let mine = extractBits(difference, 0u, min(count, 32u));
    atomicXor(&stage[on_stage(word)], mine << shift);
    atomicXor(&stage[on_stage(word + 1u)], (mine >> 1u) >> (31u - shift));
}

fn change_words(word: u32, shift: u32, count: u32, differences: vec4<u32>) {
    change_word(word, shift, count, differences.x);
    change_word(word + 1u, shift, count - min(count, 32u), differences.y);
    change_word(word + 2u, shift, count - min(count, 64u), differences.z);
    change_word(word + 3u, shift, count - min(count, 96u), differences.w);
}

// Leaves the first `count` members.
fn store_run(place: u32, stride: u32, count: u32, run: Run) {
    let bit = place << output_log2_bits;
    let bits = count << output_log2_bits;
    let old = quads_left(place);
    let quads = quads_of_run(run);
    change_words(bit >> 5u, bit & 31u, bits, old[0] ^ quads[0]);
    if (output_log2_bits > 3u) {
        change_words((bit >> 5u) + 4u, bit & 31u, bits - min(bits, 128u), old[1] ^ quads[1]);
    }
}

// The element at `place`.
fn bits_left(place: u32) -> vec2<u32> {
    let bit = place << input_log2_bits;
    let word = atomicLoad(&stage[on_stage(bit >> 5u)]);
    return vec2<u32>(extractBits(word, bit & 31u, 1u << input_log2_bits), 0u);
}

fn leave_bits(place: u32, bits: vec2<u32>) {
    let bit = place << output_log2_bits;
    change_word(bit >> 5u, bit & 31u, 1u << output_log2_bits, bits_left(place).x ^ bits.x);
}
