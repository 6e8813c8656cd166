// Slot <fours>: four adjacent columns in whole words, at any place in memory. Needs slots/output/words.wgsl.

#import "lib/memory/elements.wgsl"

// The first `there` of the columns; for others one of these again. Of 16 bits there are two or four.
fn load_four(place: u32, there: u32) -> Four {
    let last = max(there, 1u) - 1u;
    if (input_log2_bits == 4u) {
        let first = input_word(place >> 1u);
        let second = input_word((place + last) >> 1u);
        return Four(
            decode(vec2<u32>(first & 0xffffu, 0u)), decode(vec2<u32>(first >> 16u, 0u)),
            decode(vec2<u32>(second & 0xffffu, 0u)), decode(vec2<u32>(second >> 16u, 0u)),
        );
    }
    return Four(load(place), load(place + min(last, 1u)), load(place + min(last, 2u)), load(place + last));
}

fn store_four(place: u32, there: u32, x: Four) {
    if (output_log2_bits == 4u) {
        if (there > 0u) {
            set_output_unit(place >> 1u, (encode(x.a).x & 0xffffu) | (encode(x.b).x << 16u));
        }
        if (there > 2u) {
            set_output_unit((place >> 1u) + 1u, (encode(x.c).x & 0xffffu) | (encode(x.d).x << 16u));
        }
        return;
    }
    if (there > 0u) {
        store_bits(place, encode(x.a));
    }
    if (there > 1u) {
        store_bits(place + 1u, encode(x.b));
    }
    if (there > 2u) {
        store_bits(place + 2u, encode(x.c));
    }
    if (there > 3u) {
        store_bits(place + 3u, encode(x.d));
    }
}
