// Slot <stage>: elements of 32 or 64 bits in workgroup memory, in the order of memory.

#import "lib/memory/quads.wgsl"

var<workgroup> stage: array<u32, 2048>;

// Keeps neighbours out of each other's banks of memory, whether they have neighbouring vectors or neighbouring runs.
fn on_stage(word: u32) -> u32 {
    return (word ^ ((word >> 5u) & 31u)) & 2047u;
}

fn leave_vector(number: u32, words: vec4<u32>) {
    leave_words(4u * number, 4u, words);
}

fn vector_left(number: u32) -> vec4<u32> {
    return words_left(4u * number);
}

fn words_left(word: u32) -> vec4<u32> {
    return vec4<u32>(
        stage[on_stage(word)], stage[on_stage(word + 1u)], stage[on_stage(word + 2u)], stage[on_stage(word + 3u)],
    );
}

// Leaves the first `count` of four words.
fn leave_words(word: u32, count: u32, words: vec4<u32>) {
    if (count > 0u) {
        stage[on_stage(word)] = words.x;
    }
    if (count > 1u) {
        stage[on_stage(word + 1u)] = words.y;
    }
    if (count > 2u) {
        stage[on_stage(word + 2u)] = words.z;
    }
    if (count > 3u) {
        stage[on_stage(word + 3u)] = words.w;
    }
}

// The run at element `place`; what follows its `count` elements is without meaning.
fn load_run(place: u32, stride: u32, count: u32) -> Run {
    let word = place << (input_log2_bits - 5u);
    var quads: Quads;
    quads[0] = words_left(word);
    quads[1] = words_left(word + 4u);
    quads[2] = words_left(word + 8u);
    quads[3] = words_left(word + 12u);
    if (input_log2_bits > 5u) {
        quads[4] = words_left(word + 16u);
        quads[5] = words_left(word + 20u);
        quads[6] = words_left(word + 24u);
        quads[7] = words_left(word + 28u);
    }
    return run_of_quads(quads);
}

// Leaves the first `count` members.
fn store_run(place: u32, stride: u32, count: u32, run: Run) {
    let word = place << (output_log2_bits - 5u);
    let words = count << (output_log2_bits - 5u);
    let quads = quads_of_run(run);
    leave_words(word, words, quads[0]);
    leave_words(word + 4u, words - min(words, 4u), quads[1]);
    leave_words(word + 8u, words - min(words, 8u), quads[2]);
    leave_words(word + 12u, words - min(words, 12u), quads[3]);
    if (output_log2_bits > 5u) {
        leave_words(word + 16u, words - min(words, 16u), quads[4]);
        leave_words(word + 20u, words - min(words, 20u), quads[5]);
        leave_words(word + 24u, words - min(words, 24u), quads[6]);
        leave_words(word + 28u, words - min(words, 28u), quads[7]);
    }
}

// The element at `place`.
fn bits_left(place: u32) -> vec2<u32> {
    let word = place << (input_log2_bits - 5u);
    if (input_log2_bits > 5u) {
        return vec2<u32>(stage[on_stage(word)], stage[on_stage(word + 1u)]);
    }
    return vec2<u32>(stage[on_stage(word)], 0u);
}

fn leave_bits(place: u32, bits: vec2<u32>) {
    leave_words(place << (output_log2_bits - 5u), 1u << (output_log2_bits - 5u), bits.xyxy);
}
