// Slot <fours>: four adjacent columns of 16 bits are a pair of words. Needs slots/output/pairs.wgsl.

fn load_four(place: u32, there: u32) -> Four {
    let words = input_unit(place >> 2u);
    return Four(
        decode(vec2<u32>(words.x & 0xffffu, 0u)), decode(vec2<u32>(words.x >> 16u, 0u)),
        decode(vec2<u32>(words.y & 0xffffu, 0u)), decode(vec2<u32>(words.y >> 16u, 0u)),
    );
}

// All of the columns are there, or none.
fn store_four(place: u32, there: u32, x: Four) {
    if (there == 0u) {
        return;
    }
    let first = (encode(x.a).x & 0xffffu) | (encode(x.b).x << 16u);
    let second = (encode(x.c).x & 0xffffu) | (encode(x.d).x << 16u);
    set_output_unit(place >> 2u, vec2<u32>(first, second));
}
