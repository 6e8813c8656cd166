// Slot <fours>: four adjacent columns of 16 bits are two words. Needs output_owned.

fn load_four(place: u32) -> Four {
    let first = input_unit(place >> 1u);
    let second = input_unit((place >> 1u) + 1u);
    return Four(
        decode(vec2<u32>(first & 0xffffu, 0u)), decode(vec2<u32>(first >> 16u, 0u)),
        decode(vec2<u32>(second & 0xffffu, 0u)), decode(vec2<u32>(second >> 16u, 0u)),
    );
}

fn store_four(place: u32, x: Four) {
    set_output_unit(place >> 1u, (encode(x.a).x & 0xffffu) | (encode(x.b).x << 16u));
    set_output_unit((place >> 1u) + 1u, (encode(x.c).x & 0xffffu) | (encode(x.d).x << 16u));
}
