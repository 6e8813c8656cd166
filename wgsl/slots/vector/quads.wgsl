// Slot <vector>: adjacent integers of a row that are four whole words of memory. Needs quads as <input> and
// slots/output/quads.wgsl.

fn load_vector(place: u32, there: u32) -> vec4<u32> {
    return input_unit(place >> (7u - input_log2_bits));
}

// All of the integers are there, or none.
fn store_vector(place: u32, there: u32, words: vec4<u32>) {
    if (there > 0u) {
        set_output_unit(place >> (7u - output_log2_bits), words);
    }
}
