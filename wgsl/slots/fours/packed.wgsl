// Slot <fours>: four adjacent columns of 16 bits, at any place in memory: in words that others have a part of.
// Needs slots/output/packed.wgsl.

#import "lib/memory/put_words.wgsl"

// The first `there` of the columns; what is behind them has no meaning.
fn load_four(place: u32, there: u32) -> Four {
    let index = place >> 1u;
    let last = (place + max(there, 1u) - 1u) >> 1u;
    let words = vec3<u32>(input_word(index), input_word(min(index + 1u, last)), input_word(last));
    let shifted = vec2<u32>((words.x >> 16u) | (words.y << 16u), (words.y >> 16u) | (words.z << 16u));
    let pair = select(words.xy, shifted, (place & 1u) == 1u);
    return Four(
        decode(vec2<u32>(pair.x & 0xffffu, 0u)), decode(vec2<u32>(pair.x >> 16u, 0u)),
        decode(vec2<u32>(pair.y & 0xffffu, 0u)), decode(vec2<u32>(pair.y >> 16u, 0u)),
    );
}

fn store_four(place: u32, there: u32, x: Four) {
    let first = (encode(x.a).x & 0xffffu) | (encode(x.b).x << 16u);
    let second = (encode(x.c).x & 0xffffu) | (encode(x.d).x << 16u);
    put_words(place, there, vec4<u32>(first, second, 0u, 0u));
}
