// Slot <fours>: four adjacent columns of 32 or 64 bits are one or two vectors of four words.
// Needs quads as <input> and slots/output/quads.wgsl.

fn load_four(place: u32, there: u32) -> Four {
    let first = input_unit(place >> (7u - input_log2_bits));
    if (input_log2_bits == 6u) {
        let second = input_unit((place >> 1u) + 1u);
        return Four(decode(first.xy), decode(first.zw), decode(second.xy), decode(second.zw));
    }
    return Four(
        decode(vec2<u32>(first.x, 0u)), decode(vec2<u32>(first.y, 0u)),
        decode(vec2<u32>(first.z, 0u)), decode(vec2<u32>(first.w, 0u)),
    );
}

// All of the columns are there, or none.
fn store_four(place: u32, there: u32, x: Four) {
    if (there == 0u) {
        return;
    }
    if (output_log2_bits == 6u) {
        set_output_unit(place >> 1u, vec4<u32>(encode(x.a), encode(x.b)));
        set_output_unit((place >> 1u) + 1u, vec4<u32>(encode(x.c), encode(x.d)));
    } else {
        set_output_unit(place >> 2u, vec4<u32>(encode(x.a).x, encode(x.b).x, encode(x.c).x, encode(x.d).x));
    }
}
